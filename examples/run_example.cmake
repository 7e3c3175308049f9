# Runs PROGRAM in a clean FOLDER: it must end with 0 and print something that matches EXPECTED.

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${PROGRAM}" WORKING_DIRECTORY "${FOLDER}" TIMEOUT 60
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT code EQUAL 0)
  message(FATAL_ERROR "it ended with ${code}")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "its output does not match: ${EXPECTED}")
endif()
