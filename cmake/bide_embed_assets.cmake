# bide_embed_assets(TARGET HEADER NAMESPACE INDEX files...)
#
# Compiles the files of a web page into TARGET, compressed. HEADER declares `struct Asset` and
# `extern const std::vector<Asset> kAssets;` in NAMESPACE. INDEX is the page itself; in it @ASSETS@ becomes the folder of the
# others, whose name has a hash of all of them: so each version of the page has addresses of its own, which browsers may keep
# for ever, and modules find one another by relative names.
function(bide_embed_assets target header namespace index)
  get_filename_component(index "${index}" ABSOLUTE)
  foreach(file IN LISTS ARGN)
    get_filename_component(path "${file}" ABSOLUTE)
    list(APPEND paths "${path}")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_assets.cc")
  add_custom_command(OUTPUT "${source}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${source}" "-DHEADER=${header}" "-DNAMESPACE=${namespace}" "-DINDEX=${index}"
            "-DFILES=${paths}" "-DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/${target}_assets"
            -P "${PROJECT_SOURCE_DIR}/cmake/bide_embed_assets_files.cmake"
    DEPENDS "${index}" ${paths} "${PROJECT_SOURCE_DIR}/cmake/bide_embed_assets_files.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
