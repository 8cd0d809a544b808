# One libFuzzer program a parser: fuzz/MODULE_NAME_fuzz.cc links module MODULE.
file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cc)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_.*" "" module ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE cerco_flags ${module})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
