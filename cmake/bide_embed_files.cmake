# Run by bide_embed() at build time: writes OUTPUT, which defines one string for each of FILES.

set(text "// Made by bide_embed from the files it names.\n\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
foreach(file IN LISTS FILES)
  get_filename_component(stem "${file}" NAME_WE)
  get_filename_component(name "${file}" NAME)
  string(REPLACE "_" ";" words "${stem}")
  set(camel "")
  foreach(word IN LISTS words)
    string(SUBSTRING "${word}" 0 1 first)
    string(SUBSTRING "${word}" 1 -1 rest)
    string(TOUPPER "${first}" first)
    string(APPEND camel "${first}${rest}")
  endforeach()
  # Brackets and semicolons mean something in lists of CMake; a plain string is left alone.
  file(READ "${file}" content)
  string(APPEND text "\n// ${name}\nextern const std::string_view k${camel}Script;\n"
    "const std::string_view k${camel}Script = R\"embedded(${content})embedded\";\n")
endforeach()
string(APPEND text "\n}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
