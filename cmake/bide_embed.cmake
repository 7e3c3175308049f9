# bide_embed(TARGET HEADER NAMESPACE files...)
#
# Compiles text files (Lua, SQL) into TARGET. scripts/take_jobs.lua becomes `extern const std::string_view
# kTakeJobsScript;`: the name in camel case, and `Script` behind it; HEADER declares them, in NAMESPACE. Made at build
# time, so that a changed file is seen by the next build.
function(bide_embed target header namespace)
  foreach(file IN LISTS ARGN)
    get_filename_component(path "${file}" ABSOLUTE)
    list(APPEND paths "${path}")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.cc")
  add_custom_command(OUTPUT "${source}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${source}" "-DHEADER=${header}" "-DNAMESPACE=${namespace}" "-DFILES=${paths}"
            -P "${PROJECT_SOURCE_DIR}/cmake/bide_embed_files.cmake"
    DEPENDS ${paths} "${PROJECT_SOURCE_DIR}/cmake/bide_embed_files.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
