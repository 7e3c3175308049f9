# bide::bide: the one library users link, put together from the folders' targets and the targets of ours that those link.
# It exists once any folder does. Static, or shared with BUILD_SHARED_LIBS.

include(GNUInstallDirs)

set(waiting "")
foreach(folder IN LISTS BIDE_LIBRARY_FOLDERS)
  string(REGEX REPLACE "^src/" "bide_" target "${folder}")
  string(REPLACE "/" "_" target "${target}")
  list(APPEND waiting ${target})
endforeach()

set(parts "")
set(needed Threads::Threads)
while(waiting)
  list(POP_FRONT waiting target)
  if(NOT TARGET ${target} OR target IN_LIST parts OR target STREQUAL "bide_warnings")
    continue()
  endif()
  list(APPEND parts ${target})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(library MATCHES "^bide_")
      list(APPEND waiting ${library})
    elseif(library)
      # What a part links from outside, the whole must link too.
      list(APPEND needed "${library}")
    endif()
  endforeach()
endwhile()
list(REMOVE_DUPLICATES needed)

if(parts)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(bide ${objects})
  add_library(bide::bide ALIAS bide)
  # Cleared, because nothing is compiled here and the warnings are no business of whoever links it.
  set_target_properties(bide PROPERTIES LINKER_LANGUAGE CXX LINK_LIBRARIES "" INTERFACE_LINK_LIBRARIES "")
  # Before 1.0 a minor version may change the interface.
  set_target_properties(bide PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(bide PUBLIC cxx_std_20)
  target_include_directories(bide PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # A library that was found as a file is linked by its name where ours is installed: the folder is this machine's.
  set(bide_needed_libraries "")
  foreach(library IN LISTS needed)
    if(library MATCHES "^/.*/lib([^/]+)\\.(so|a)$")
      list(APPEND bide_needed_libraries "${CMAKE_MATCH_1}")
      target_link_libraries(bide PRIVATE $<BUILD_INTERFACE:${library}> $<INSTALL_INTERFACE:${CMAKE_MATCH_1}>)
    else()
      list(APPEND bide_needed_libraries "${library}")
      target_link_libraries(bide PRIVATE ${library})
    endif()
  endforeach()
endif()
