# The tests. Unit tests are one program a module, built and run with sanitizers (lane `quick`);
# the release tree, where ctest runs, takes them from build-sanitize. Scripts are tests/**/test_*.py,
# whose second line names the lane (`# lane: quick|full|long`); they run the release programs, and
# those that say `# sanitized` on their third line run again with the sanitized ones.
set(CERCO_LANE full CACHE STRING "Lane that ./test was asked for: quick, full or long")

if(CERCO_SANITIZE)
  find_library(CERCO_GTEST gtest REQUIRED)
  find_library(CERCO_GTEST_MAIN gtest_main REQUIRED)
endif()

foreach(module base os priv confine policy plan ipc http journal host workspace sandbox tunnel init isolate gateway broker publish
        supervisor attack cli)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${module}/*_test.cc)
  if(NOT sources)
    continue()
  endif()
  if(CERCO_SANITIZE)
    add_executable(${module}_tests ${sources})
    target_link_libraries(${module}_tests PRIVATE cerco_flags ${module} ${CERCO_GTEST} ${CERCO_GTEST_MAIN}
                          Threads::Threads)
    target_compile_definitions(${module}_tests PRIVATE CERCO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                               CERCO_BUILD_DIR="${CMAKE_BINARY_DIR}")
    if(TARGET cerco-init)
      add_dependencies(${module}_tests cerco-init)
    endif()
    if(module MATCHES "^(tunnel|init|sandbox)$" AND TARGET cerco-tunnel)
      add_dependencies(${module}_tests cerco-tunnel)
    endif()
    if(module STREQUAL "gateway" AND TARGET cerco-gateway)
      add_dependencies(gateway_tests cerco-gateway)  # process_test starts it
    endif()
    if(module STREQUAL "gateway")
      target_precompile_headers(gateway_tests PRIVATE ${CMAKE_SOURCE_DIR}/cmake/asio_pch.h)
    elseif(module STREQUAL "base")
      target_precompile_headers(base_tests PRIVATE ${CMAKE_SOURCE_DIR}/cmake/test_pch.h)
    else()
      target_precompile_headers(${module}_tests REUSE_FROM base_tests)
    endif()
    set(program ${CMAKE_BINARY_DIR}/${module}_tests)
  else()
    set(program ${CMAKE_SOURCE_DIR}/build-sanitize/${module}_tests)
  endif()
  add_test(NAME unit.${module} COMMAND ${program})
  set_tests_properties(unit.${module} PROPERTIES LABELS quick TIMEOUT 600)
  if(module MATCHES "^(priv|sandbox)$")
    # They count what the whole host has of mounts, groups and namespaces.
    set_tests_properties(unit.${module} PROPERTIES RUN_SERIAL ON)
  endif()
  if(module STREQUAL "journal" AND CERCO_LANE STREQUAL "long")
    set_tests_properties(unit.journal PROPERTIES ENVIRONMENT CERCO_JOURNAL_KILLS=300)
  endif()
endforeach()

if(CERCO_SANITIZE)
  return()
endif()

set(python_environment PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support
    CERCO_LANE=${CERCO_LANE})
function(cerco_script name script lane build)
  add_test(NAME ${name} COMMAND /usr/bin/python3 -m pytest -q -p no:cacheprovider -rs ${script}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${lane} TIMEOUT 5400
    ENVIRONMENT "${python_environment};CERCO_BUILD=${build}")
  if(NOT name MATCHES "^(mutation|cases|frame)[.]")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/test_*.py)
foreach(script ${scripts})
  file(STRINGS ${script} head LIMIT_COUNT 3)
  list(FILTER head INCLUDE REGEX "^# ")
  if(NOT "${head}" MATCHES "# lane: (quick|full|long)")
    message(FATAL_ERROR "${script}: its second line must name its lane: # lane: quick, full or long")
  endif()
  set(lane ${CMAKE_MATCH_1})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${script})
  string(REGEX REPLACE "\\.py$" "" name ${name})
  string(REGEX REPLACE "(^|/)test_" "." name ${name})
  string(REGEX REPLACE "^\\." "" name ${name})
  cerco_script(${name} ${script} ${lane} ${CMAKE_SOURCE_DIR}/build)
  if("${head}" MATCHES "# sanitized")
    if(lane STREQUAL "quick")
      set(lane full)
    endif()
    cerco_script(${name}-sanitized ${script} ${lane} ${CMAKE_SOURCE_DIR}/build-sanitize)
  endif()
endforeach()

# Fuzzing: 5 s a parser, 60 s in the long lane; one input that crashed once is a regression test for ever.
set(seconds 5)
if(CERCO_LANE STREQUAL "long")
  set(seconds 60)
endif()
file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cc)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/corpus/${name})
  set(seeds)
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/fuzz/seeds/${name})
    set(seeds ${CMAKE_SOURCE_DIR}/fuzz/seeds/${name})
  endif()
  add_test(NAME fuzz.${name} COMMAND ${CMAKE_SOURCE_DIR}/build-sanitize/${name} -max_total_time=${seconds}
           -print_final_stats=1 -timeout=10 -rss_limit_mb=2048 -max_len=8192
           ${CMAKE_BINARY_DIR}/corpus/${name} ${seeds})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS full TIMEOUT 200)
endforeach()

add_test(NAME style.format COMMAND ${CMAKE_SOURCE_DIR}/tools/format --check)
set_tests_properties(style.format PROPERTIES LABELS full)
add_test(NAME style.tidy COMMAND ${CMAKE_SOURCE_DIR}/tools/tidy ${CERCO_LANE})
set(seconds 3000)
if(CERCO_LANE STREQUAL "long")  # the whole tree, with the analyser
  set(seconds 9000)
endif()
set_tests_properties(style.tidy PROPERTIES LABELS full TIMEOUT ${seconds})
