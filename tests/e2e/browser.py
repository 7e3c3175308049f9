"""A headless Chromium, driven over WebDriver: just what the tests of the dashboard need."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PATIENCE = 30


def find_missing():
    """Why there is no browser here, or nothing."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


class WebDriverError(Exception):
    pass


class Element:
    def __init__(self, browser, number):
        self._browser = browser
        self._path = f"/element/{number}"
        self.reference = {ELEMENT: number}

    def click(self):
        self._browser.call("POST", self._path + "/click", {})

    def type(self, text):
        self._browser.call("POST", self._path + "/value", {"text": text})

    def clear(self):
        self._browser.call("POST", self._path + "/clear", {})

    @property
    def text(self):
        return self._browser.call("GET", self._path + "/text")


class Browser:
    """One window. Nothing is shared with another browser, nor kept."""

    def __init__(self, width=1280, height=900, dark=False):
        self._folder = tempfile.TemporaryDirectory(prefix="bide-browser-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._session = ""
        environment = {"PATH": os.environ["PATH"], "HOME": self._folder.name, "TMPDIR": self._folder.name, "LANG": "C.UTF-8"}
        self._driver = subprocess.Popen(["chromedriver", f"--port={port}"], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_for_driver()
            flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     "--force-color-profile=srgb", "--lang=en",
                     f"--window-size={width},{height}", f"--user-data-dir={self._folder.name}/profile"]
            started = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"args": flags},
                "goog:loggingPrefs": {"browser": "ALL"},
                "timeouts": {"script": PATIENCE * 1000}}}})
            self._session = "/session/" + started["sessionId"]
            if dark:
                self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        except BaseException:
            self.close()
            raise

    def _wait_for_driver(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if self.call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > end:
                    raise
            time.sleep(0.02)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + self._session + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise WebDriverError(json.load(error)["value"]["message"]) from None

    def close(self):
        try:
            if self._session:
                self.call("DELETE", "")
        except (WebDriverError, OSError):
            pass
        self._driver.terminate()
        self._driver.wait(timeout=PATIENCE)
        self._folder.cleanup()

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    @property
    def url(self):
        return self.call("GET", "/url")

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script, *arguments):
        """The value of a script, which may wait for promises."""
        wrapped = "const done = arguments[arguments.length - 1]; (async (...given) => {" + script + \
                  "})(...arguments).then(value => done({value}), error => done({error: String(error)}));"
        result = self.call("POST", "/execute/async", {"script": wrapped, "args": list(arguments)})
        if "error" in result:
            raise WebDriverError(result["error"])
        return result.get("value")

    def all(self, selector):
        return [Element(self, found[ELEMENT]) for found in self.call("POST", "/elements", {"using": "css selector", "value": selector})]

    def wait(self, what, condition):
        """Until the condition gives something; elements that were replaced meanwhile are looked for again."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                found = condition()
            except WebDriverError as error:
                found = None
                what_went_wrong = str(error)
            else:
                what_went_wrong = ""
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"not seen within {PATIENCE} s: {what} {what_went_wrong}\n{self.text()}")
            time.sleep(0.03)

    def find(self, selector, text=""):
        """The first visible element with this text in it, once there is one."""
        script = """const [selector, text] = given;
            return [...document.querySelectorAll(selector)].find(each =>
                each.textContent.includes(text) && each.checkVisibility()) ?? null;"""

        def look():
            found = self.run(script, selector, text)
            return Element(self, found[ELEMENT]) if found else None
        return self.wait(f"{selector} with {text!r}", look)

    def click(self, selector, text=""):
        """By the page itself: what is drawn anew between looking and clicking is no matter."""
        script = """const [selector, text] = given;
            const found = [...document.querySelectorAll(selector)].find(each =>
                each.textContent.includes(text) && each.checkVisibility());
            found?.click();
            return Boolean(found);"""
        self.wait(f"{selector} with {text!r}, to click", lambda: self.run(script, selector, text))

    def text(self):
        return self.run("return document.body?.innerText ?? '';")

    def wait_for_text(self, text):
        return self.wait(f"the text {text!r}", lambda: text in self.text())

    def press(self, key):
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def problems(self):
        """What the console says that is an error."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def resize(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path, whole=False, scale=1):
        options = {"format": "png"}
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            options |= {"captureBeyondViewport": True,
                        "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": scale}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.captureScreenshot", **options)["data"]))
