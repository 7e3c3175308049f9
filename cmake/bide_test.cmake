# Everything that ./test runs under the sanitizers.
add_custom_target(bide_unit_tests)

# bide_test(NAME sources... [LIBS libraries...] [LABELS labels...] [TIMEOUT seconds])
#
# A GoogleTest executable, known to ctest by the same name. Sources lie in the calling folder.
# Without LABELS it has the label `unit`; ./test runs those a second time under the sanitizers.
# Does nothing where BIDE_BUILD_TESTS is off, so that folders need not ask.
function(bide_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LIBS;LABELS")
  if(NOT BIDE_BUILD_TESTS)
    return()
  endif()
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bide_test(${name}): no sources")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(BIDE_SANITIZE)
    math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")  # Sanitized code is several times slower.
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main Threads::Threads)
  add_test(NAME ${name} COMMAND ${name})
  # The long ones are started first, or one of them would run alone at the end.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT})
  if("unit" IN_LIST arg_LABELS)
    add_dependencies(bide_unit_tests ${name})
  endif()
endfunction()

# bide_has_coroutines(TARGETS...): clang 14 cannot check calls through pointers to functions that are coroutines.
function(bide_has_coroutines)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target} AND BIDE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${target} PRIVATE -fno-sanitize=function)
    endif()
  endforeach()
endfunction()

# bide_fuzz(NAME sources... [LIBS libraries...])
#
# A libFuzzer executable; built only by the fuzz preset.
function(bide_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  if(NOT BIDE_FUZZ)
    return()
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} Threads::Threads)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
