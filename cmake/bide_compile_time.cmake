# What makes a build from nothing quick. Included after every folder, because it goes over all of their targets:
#
# - precompiled headers: the standard library's and GoogleTest's, of which every file includes some. Ours are not among
#   them, because they change. A source that forgets one of the standard library is found by tests/tidy.
# - tests and examples are optimised lightly; what they test is not touched.
# - unity builds (BIDE_UNITY_BUILD): sources of one target are compiled eight at a time, because most of the time goes into
#   the headers that they share. So names in unnamed namespaces are unique within a folder. The dev preset compiles sources one
#   by one, which is quicker after a small change, and the clang preset does, which finds forgotten includes of ours.

option(BIDE_PRECOMPILED_HEADERS "Compile the standard library's headers once" ON)

set(standard_headers
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstdio> <deque> <filesystem> <functional>
  <map> <memory> <mutex> <optional> <set> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)

# Sets OUT to the targets that compile something in FOLDER of the build and below.
function(bide_compiled_targets folder out)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  set(compiled "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC_LIBRARY|OBJECT_LIBRARY|EXECUTABLE)$")
      list(APPEND compiled ${target})
    endif()
  endforeach()
  get_property(subfolders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    bide_compiled_targets("${subfolder}" below)
    list(APPEND compiled ${below})
  endforeach()
  set(${out} "${compiled}" PARENT_SCOPE)
endfunction()

# The shipped ones are the libraries and the command; everything else is there for the tests.
set(library_targets "")
set(command_targets "")
set(test_targets "")
bide_compiled_targets("${PROJECT_SOURCE_DIR}" every_target)
list(REMOVE_ITEM every_target bide)
foreach(target IN LISTS every_target)
  get_target_property(type ${target} TYPE)
  get_target_property(folder ${target} SOURCE_DIR)
  if(folder MATCHES "^${PROJECT_SOURCE_DIR}/(tests|examples)" OR (type STREQUAL "EXECUTABLE" AND NOT target STREQUAL "bide_cli"))
    list(APPEND test_targets ${target})
  elseif(type STREQUAL "EXECUTABLE")
    list(APPEND command_targets ${target})
  else()
    list(APPEND library_targets ${target})
  endif()
endforeach()

function(bide_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE" AND NOT BIDE_CHECK_ONLY)
    # As its executables are compiled, or it could not share their precompiled headers.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIE)
  endif()
endfunction()
foreach(target IN LISTS test_targets)
  bide_compile_lightly(${target})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(NOT libraries MATCHES "GTest::")
    # What GoogleTest's targets define, or their header could not be shared.
    target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
  endif()
endforeach()

if(BIDE_UNITY_BUILD)
  set_target_properties(${every_target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes the sources for headers, whose types must not use an unnamed namespace.
    foreach(target IN LISTS every_target)
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endforeach()
    # The more it sees at once, the more often it takes a variant for uninitialised.
    target_compile_options(bide_brokers_rabbitmq PRIVATE -Wno-maybe-uninitialized)
  endif()
  # These have names in common with others of their folder.
  set(compiled_alone
    bench/broker_bench.cc bench/engine_bench.cc bench/server_bench.cc bench/steps_bench.cc bench/worker_bench.cc
    src/core/job_rules_test.cc src/core/retry_policy_test.cc src/core/time_text_test.cc
    src/engine/check/snapshot_check.cc
    src/engine/id_table_test.cc src/engine/ledger_ids_test.cc
    src/engine/journal/records_test.cc src/wire/wire_test.cc
    src/brokers/rabbitmq/compat/nippy_writer.cc src/brokers/rabbitmq/compat/nippy.cc src/brokers/rabbitmq/compat/async_worker_test.cc
    src/brokers/remote/remote_broker_test.cc src/worker/lease_queue_test.cc src/server/health_test.cc
    tests/support/simulated_disk_fault_test.cc tests/support/simulated_disk_test.cc
    tests/crash/witness.cc tests/simulation/requests.cc)
  if(NOT BIDE_BUILD_TESTS)
    list(FILTER compiled_alone EXCLUDE REGEX "^tests/")
  endif()
  foreach(source IN LISTS compiled_alone)
    get_filename_component(folder "${PROJECT_SOURCE_DIR}/${source}" DIRECTORY)
    set_source_files_properties("${PROJECT_SOURCE_DIR}/${source}" DIRECTORY "${folder}"
      PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endif()

if(BIDE_CHECK_ONLY)
  if(TARGET bide_written_pages)
    # There is no command that could write them.
    set_target_properties(bide_written_pages PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  # By a command of its own, because the rules for compiling compile nothing.
  set(check_headers "${PROJECT_BINARY_DIR}/standard_headers.h")
  list(TRANSFORM standard_headers PREPEND "#include " OUTPUT_VARIABLE included)
  if(BIDE_BUILD_TESTS)
    list(APPEND included "#include <gtest/gtest.h>")
  endif()
  list(JOIN included "\n" included)
  file(CONFIGURE OUTPUT "${check_headers}" CONTENT "${included}\n" @ONLY)
  separate_arguments(check_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG}")
  add_custom_command(OUTPUT "${BIDE_CHECK_HEADERS}"
    COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -D_GLIBCXX_ASSERTIONS ${check_flags}
      -DGTEST_HAS_PTHREAD=1 -x c++-header "${check_headers}" -o "${BIDE_CHECK_HEADERS}"
    DEPENDS "${check_headers}" VERBATIM)
  add_custom_target(bide_check_headers DEPENDS "${BIDE_CHECK_HEADERS}")
  foreach(target IN LISTS every_target)
    add_dependencies(${target} bide_check_headers)
  endforeach()
  return()
endif()
if(NOT BIDE_PRECOMPILED_HEADERS)
  return()
endif()

# bide_precompile(HEADERS targets...): all of these share what the first of them compiles.
function(bide_precompile headers first)
  target_precompile_headers(${first} PRIVATE ${headers})
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
endfunction()

# g++ 12 warns about code of its own library that was precompiled and is inlined into ours. Warnings in what is shipped
# are worth more than the time, so there it is for the sanitizers only, whose builds are without these warnings.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(target IN LISTS test_targets)
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict)
  endforeach()
endif()
if(BIDE_SANITIZE AND library_targets)
  # The address sanitizer's build is not optimised, which takes less than half the time; the tests of the engine are long
  # enough that it must be.
  set(optimised_targets bide_core bide_platform bide_journal bide_engine)
  foreach(target IN LISTS optimised_targets)
    target_compile_options(${target} PRIVATE -O1)
  endforeach()
  list(REMOVE_ITEM library_targets ${optimised_targets})
  bide_precompile("${standard_headers}" ${optimised_targets})
  bide_precompile("${standard_headers}" ${library_targets})
endif()
if(test_targets)
  # A target of its own, for flags without any test's macros.
  file(WRITE "${PROJECT_BINARY_DIR}/test_headers.cc" "int main() {}\n")
  add_executable(bide_test_headers EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/test_headers.cc")
  target_link_libraries(bide_test_headers PRIVATE GTest::gtest)
  bide_compile_lightly(bide_test_headers)
  bide_precompile("${standard_headers};<gtest/gtest.h>" bide_test_headers ${test_targets})
endif()
