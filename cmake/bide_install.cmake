# `cmake --install` and `cpack`: the library, its headers, the command with its manual page and completions, and what
# find_package and pkg-config need. Nothing installed names a folder of this machine, so a prefix can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

option(BIDE_INSTALL "Have rules for installing" ${PROJECT_IS_TOP_LEVEL})
if(NOT BIDE_INSTALL OR NOT TARGET bide)
  return()
endif()

# --- the library

install(TARGETS bide EXPORT bideTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/bide" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development FILES_MATCHING PATTERN "*.h")

# How each library that ours links is found by those who link ours: a line for find_dependency, and either a module or
# flags for pkg-config.
set(finds "")
set(modules "")
set(flags "")
foreach(library IN LISTS bide_needed_libraries)
  if(library STREQUAL "Threads::Threads")
    list(APPEND finds "Threads")
    list(APPEND flags "-pthread")
  elseif(library MATCHES "^rabbitmq::rabbitmq")
    list(APPEND finds "rabbitmq-c")
    list(APPEND modules "librabbitmq")
  elseif(library STREQUAL "CURL::libcurl")
    list(APPEND finds "CURL")
    list(APPEND modules "libcurl")
  elseif(library MATCHES "^[A-Za-z0-9_+.-]+$" AND NOT TARGET ${library})
    list(APPEND flags "-l${library}")
  else()
    message(FATAL_ERROR "cmake/bide_install.cmake does not say how users of an installed bide find ${library}")
  endif()
endforeach()

set(places "${CMAKE_INSTALL_LIBDIR}/cmake/bide")
list(TRANSFORM finds REPLACE "(.+)" "find_dependency(\\1)\n")
list(JOIN finds "" bide_find_dependencies)
configure_package_config_file("${PROJECT_SOURCE_DIR}/packaging/bideConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/packaging/bideConfig.cmake" INSTALL_DESTINATION "${places}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/packaging/bideConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/packaging/bideConfig.cmake" "${PROJECT_BINARY_DIR}/packaging/bideConfigVersion.cmake"
  DESTINATION "${places}" COMPONENT development)
install(EXPORT bideTargets NAMESPACE bide:: DESTINATION "${places}" COMPONENT development)

# Sets OUT to FOLDER of the prefix as bide.pc says it.
function(bide_pc_folder folder out)
  if(IS_ABSOLUTE "${folder}")
    set(${out} "${folder}" PARENT_SCOPE)
  else()
    set(${out} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()
bide_pc_folder("${CMAKE_INSTALL_INCLUDEDIR}" bide_pc_includedir)
bide_pc_folder("${CMAKE_INSTALL_LIBDIR}" bide_pc_libdir)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(bide_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(bide_pc_prefix "\${pcfiledir}/${up}")
endif()
# Who links a static library links what it needs, too, and should not have to say --static for it.
list(JOIN modules ", " modules)
list(JOIN flags " " flags)
get_target_property(type bide TYPE)
foreach(visibility "" "_private")
  set(bide_pc_libs${visibility} "")
  set(bide_pc_requires${visibility} "")
endforeach()
set(visibility "")
if(type STREQUAL "SHARED_LIBRARY")
  set(visibility "_private")
endif()
if(flags)
  set(bide_pc_libs${visibility} " ${flags}")
endif()
if(modules)
  set(bide_pc_requires${visibility} " ${modules}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/packaging/bide.pc.in" "${PROJECT_BINARY_DIR}/packaging/bide.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/packaging/bide.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT development)

# --- the command

if(TARGET bide_cli)
  if(type STREQUAL "SHARED_LIBRARY" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH library_from_command "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(bide_cli PROPERTIES INSTALL_RPATH "\$ORIGIN/${library_from_command}")
  endif()
  set(written "${PROJECT_BINARY_DIR}/written")
  set(data "${CMAKE_INSTALL_DATADIR}")
  install(TARGETS bide_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
  install(FILES "${written}/bide.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT command)
  install(FILES "${written}/bide.bash" DESTINATION "${data}/bash-completion/completions" RENAME bide COMPONENT command)
  install(FILES "${written}/_bide" DESTINATION "${data}/zsh/site-functions" COMPONENT command)
  install(FILES "${written}/bide.fish" DESTINATION "${data}/fish/vendor_completions.d" COMPONENT command)
endif()
# The server as a service: systemd finds the command in the usual places, of which the prefix should be one.
install(FILES "${PROJECT_SOURCE_DIR}/packaging/bide.service" DESTINATION lib/systemd/system COMPONENT command)
install(FILES "${PROJECT_SOURCE_DIR}/packaging/bide.conf" DESTINATION lib/sysusers.d COMPONENT command)
install(FILES "${PROJECT_SOURCE_DIR}/packaging/bide.toml" DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples" COMPONENT command)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT command)

# --- Debian packages: bide and libbide-dev, and the library between them when it is shared

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bide)
set(CPACK_PACKAGE_CONTACT "The bide authors <bide@bide.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "durable background jobs for C++")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/debian_package.cmake")
set(CPACK_BIDE_PACKAGING "${PROJECT_SOURCE_DIR}/packaging")
set(CPACK_BIDE_STRIP "${CMAKE_STRIP}")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_COMPONENTS_ALL command development)
set(jobs_are "A job is enqueued now, later, or again after a failure; it runs at least once,\nnever early, and never disappears.")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "${jobs_are}\nThis package has the command: it enqueues jobs, runs programs in any language\nas their handlers, and shows, replays and audits them.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME bide)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "tzdata, systemd | adduser")
set(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_EXTRA
  "${PROJECT_SOURCE_DIR}/packaging/debian/conffiles"
  "${PROJECT_SOURCE_DIR}/packaging/debian/postinst"
  "${PROJECT_SOURCE_DIR}/packaging/debian/prerm"
  "${PROJECT_SOURCE_DIR}/packaging/debian/postrm")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${jobs_are}\nThis package has what is needed to build programs with it: headers, library,\nand the files for CMake and pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libbide-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libc6-dev, libstdc++-12-dev")
if("rabbitmq" IN_LIST bide_needed_libraries OR modules MATCHES "librabbitmq")
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", librabbitmq-dev")
endif()
if("pq" IN_LIST bide_needed_libraries)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libpq-dev, libmariadb-dev")
endif()
if("hiredis" IN_LIST bide_needed_libraries)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libhiredis-dev")
endif()
if(modules MATCHES "libcurl")
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libcurl4-openssl-dev")
endif()
# For <bide/json.h>.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "nlohmann-json3-dev")
if(type STREQUAL "SHARED_LIBRARY")
  get_target_property(soversion bide SOVERSION)
  list(APPEND CPACK_COMPONENTS_ALL library)
  set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${jobs_are}\nThis package has the shared library.")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "libbide${soversion}")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
  set(exactly "libbide${soversion} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
  string(APPEND CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS ", ${exactly}")
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", ${exactly}")
endif()
include(CPack)
