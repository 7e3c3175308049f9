# How everything is compiled: warnings, hardening, sanitizers, ccache.

add_library(bide_warnings INTERFACE)
target_compile_options(bide_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${BIDE_WERROR}>:-Werror>)
link_libraries(bide_warnings)

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

if(BIDE_SANITIZE)
  add_compile_options(-fsanitize=${BIDE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BIDE_SANITIZE})
  # g++ 12 warns about code of its own library when the sanitizers keep it from seeing through it.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
elseif(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -D_GLIBCXX_ASSERTIONS)
  add_link_options(-Wl,-z,relro -Wl,-z,now)
else()
  add_compile_options(-D_GLIBCXX_ASSERTIONS)
endif()

if(BIDE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "BIDE_FUZZ needs clang: cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(BIDE_CCACHE ccache)
mark_as_advanced(BIDE_CCACHE)
if(BIDE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${BIDE_CCACHE}")
endif()
