# What Debian wants of a package and a plain installation does not have. CPack runs it when the files lie in their
# staging folders, before they are packed: copyright and changelog of each package, manual pages compressed, zsh's
# completion where Debian has those of packages, the configuration of the service in /etc, archives without debug information.

file(GLOB staged "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(stage IN LISTS staged)
  if(NOT IS_DIRECTORY "${stage}/usr")
    continue()
  endif()
  get_filename_component(component "${stage}" NAME)
  string(TOUPPER "${component}" component)
  set(package "${CPACK_DEBIAN_${component}_PACKAGE_NAME}")
  set(share "${stage}/usr/share")

  file(REMOVE_RECURSE "${share}/doc")
  set(documents "${share}/doc/${package}")
  file(MAKE_DIRECTORY "${documents}")
  file(COPY_FILE "${CPACK_BIDE_PACKAGING}/copyright" "${documents}/copyright")
  file(COPY_FILE "${CPACK_BIDE_PACKAGING}/changelog" "${documents}/changelog.Debian")
  file(CHMOD "${documents}/copyright" "${documents}/changelog.Debian"
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(GLOB compressed "${documents}/changelog.Debian" "${share}/man/*/*.[1-8]")
  # Without name and time in it, so that the same input gives the same package.
  execute_process(COMMAND gzip -9 --no-name --force ${compressed} COMMAND_ERROR_IS_FATAL ANY)

  if(EXISTS "${stage}/usr/lib/systemd/system/bide.service")
    # Where the service looks for it.
    file(MAKE_DIRECTORY "${stage}/etc/bide")
    file(COPY_FILE "${CPACK_BIDE_PACKAGING}/bide.toml" "${stage}/etc/bide/bide.toml")
    file(CHMOD "${stage}/etc/bide/bide.toml" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
  if(EXISTS "${share}/zsh/site-functions")
    file(RENAME "${share}/zsh/site-functions" "${share}/zsh/vendor-completions")
  endif()
  file(GLOB_RECURSE archives "${stage}/usr/lib/*.a")
  if(archives)
    execute_process(COMMAND "${CPACK_BIDE_STRIP}" --strip-debug --enable-deterministic-archives ${archives}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
