// Before the first paint: light or dark, as was chosen, or else as the system has it. The choice is a preference and not a secret,
// so the browser may keep it.
(() => {
  const kKey = 'bide-theme';
  const system = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const show = () => {
    const { choice } = root.dataset;
    root.dataset.theme = choice === 'auto' ? (system.matches ? 'dark' : 'light') : choice;
  };
  let kept = null;
  try {
    kept = localStorage.getItem(kKey);
  } catch { /* A browser that keeps nothing. */ }
  root.dataset.choice = kept === 'light' || kept === 'dark' ? kept : 'auto';
  system.addEventListener('change', show);
  show();
  window.chooseTheme = (choice) => {
    root.dataset.choice = choice;
    show();
    try {
      localStorage.setItem(kKey, choice);
    } catch { /* It holds until the page is left. */ }
  };
})();
