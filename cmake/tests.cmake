# Unit tests: one program a module, lane `quick`. Scripts: tests/**/test_*.py, whose second line
# names the lane (`# lane: quick|full|long`).
find_library(CERCO_GTEST gtest REQUIRED)
find_library(CERCO_GTEST_MAIN gtest_main REQUIRED)
include(GoogleTest)

foreach(module base os priv confine policy plan ipc http journal host workspace sandbox init gateway broker
        supervisor attack cli)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${module}/*_test.cc)
  if(sources)
    add_executable(${module}_tests ${sources})
    target_link_libraries(${module}_tests PRIVATE cerco_flags ${module} ${CERCO_GTEST} ${CERCO_GTEST_MAIN}
                          Threads::Threads)
    target_compile_definitions(${module}_tests PRIVATE CERCO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                               CERCO_BUILD_DIR="${CMAKE_BINARY_DIR}")
    if(module STREQUAL "init")
      file(GLOB init_units ${CMAKE_SOURCE_DIR}/src/init/*.cc)
      list(FILTER init_units EXCLUDE REGEX "_test\\.cc$")
      target_sources(init_tests PRIVATE ${init_units})
    endif()
    if(module STREQUAL "gateway")
      target_precompile_headers(gateway_tests PRIVATE ${CMAKE_SOURCE_DIR}/cmake/asio_pch.h)
    endif()
    add_test(NAME unit.${module} COMMAND ${module}_tests WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(unit.${module} PROPERTIES LABELS quick TIMEOUT 300)
  endif()
endforeach()

file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/test_*.py)
foreach(script ${scripts})
  file(STRINGS ${script} head LIMIT_COUNT 3 REGEX "^# lane: (quick|full|long)$")
  if(NOT head)
    message(FATAL_ERROR "${script}: its second line must name its lane: # lane: quick, full or long")
  endif()
  string(REGEX REPLACE "^# lane: " "" lane "${head}")
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${script})
  string(REGEX REPLACE "\\.py$" "" name ${name})
  string(REPLACE "/test_" "." name ${name})
  add_test(NAME ${name} COMMAND /usr/bin/python3 -m pytest -q -p no:cacheprovider -rs ${script}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${lane} TIMEOUT 1200
    ENVIRONMENT "CERCO_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support"
    RUN_SERIAL ON)
endforeach()
