# How everything is compiled: warnings, hardening, sanitizers, ccache.

add_library(bide_warnings INTERFACE)
target_compile_options(bide_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${BIDE_WERROR}>:-Werror>)
link_libraries(bide_warnings)

# A precompiled header is for one kind of code, and what is only checked shares one.
if(NOT BIDE_CHECK_ONLY)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

if(BIDE_SANITIZE)
  add_compile_options(-fsanitize=${BIDE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BIDE_SANITIZE})
  # g++ 12 warns about code of its own library when the sanitizers keep it from seeing through it.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict)
  endif()
elseif(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -D_GLIBCXX_ASSERTIONS)
  add_link_options(-Wl,-z,relro -Wl,-z,now)
  # What is shipped does not tell where it was built.
  add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
else()
  add_compile_options(-D_GLIBCXX_ASSERTIONS)
endif()

if(BIDE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "BIDE_FUZZ needs clang: cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(BIDE_CHECK_ONLY)
  # A compiler's opinion without its work: what would be compiled is only parsed, what would be linked is an empty file.
  # ninja still knows what has been looked at since it changed.
  # The standard library and GoogleTest are parsed once (cmake/bide_compile_time.cmake), with a macro of GoogleTest's targets.
  add_compile_definitions(GTEST_HAS_PTHREAD=1)
  set(BIDE_CHECK_HEADERS "${PROJECT_BINARY_DIR}/standard_headers.pch")
  set(look_at "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only -include-pch ${BIDE_CHECK_HEADERS} <SOURCE>")
  set(CMAKE_CXX_COMPILE_OBJECT "${look_at}" "\"${CMAKE_COMMAND}\" -E touch <OBJECT>")
  foreach(linked LINK_EXECUTABLE CREATE_STATIC_LIBRARY CREATE_SHARED_LIBRARY)
    set(CMAKE_CXX_${linked} "\"${CMAKE_COMMAND}\" -E touch <TARGET>")
  endforeach()
  foreach(archived CREATE APPEND FINISH)
    unset(CMAKE_CXX_ARCHIVE_${archived})
  endforeach()
  return()
endif()

find_program(BIDE_CCACHE ccache)
mark_as_advanced(BIDE_CCACHE)
if(BIDE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # It learns what a file depends on from the compiler instead of preprocessing the file first, which halves what a miss
  # costs; and it must be told that precompiled headers are welcome.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros "${BIDE_CCACHE}")
endif()
