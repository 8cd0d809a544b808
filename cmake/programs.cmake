# One executable a process: src/main/NAME_main.cc. `cerco`, the supervisor and the journal are static,
# position-independent programs: without a dynamic linker their own start takes half the time, and the
# supervisor's forks copy less.
function(cerco_program name)
  cmake_parse_arguments(P "STATIC_RUNTIME" "MAIN" "DEPENDS" ${ARGN})
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${P_MAIN})
    return()
  endif()
  add_executable(${name} ${CMAKE_SOURCE_DIR}/${P_MAIN})
  target_link_libraries(${name} PRIVATE cerco_flags ${P_DEPENDS})
  if(P_STATIC_RUNTIME AND NOT CERCO_SANITIZE AND CERCO_WHOLLY_STATIC)
    target_link_options(${name} PRIVATE -static-pie)
  elseif(P_STATIC_RUNTIME AND NOT CERCO_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

cerco_program(cerco MAIN src/main/cerco_main.cc DEPENDS cli STATIC_RUNTIME)
cerco_program(cerco-journal MAIN src/main/journal_main.cc DEPENDS journal STATIC_RUNTIME)
cerco_program(cerco-tunnel MAIN src/main/tunnel_main.cc DEPENDS tunnel STATIC_RUNTIME)
cerco_program(cerco-gateway MAIN src/main/gateway_main.cc DEPENDS gateway)
cerco_program(cerco-broker MAIN src/main/broker_main.cc DEPENDS broker)
cerco_program(cerco-publisher MAIN src/main/publisher_main.cc DEPENDS publish STATIC_RUNTIME)
cerco_program(cerco-minter MAIN src/main/minter_main.cc DEPENDS gateway)
# cerco with single protections taken out of its plan, for the tests' positive controls; never installed.
cerco_program(cerco-without MAIN tests/support/without_main.cc DEPENDS cli STATIC_RUNTIME)

# The signer for AWS alone, for a comparison with AWS's own; never installed.
cerco_program(sigv4 MAIN tests/support/sigv4_main.cc DEPENDS http)
# Pid 1 of a microVM's guest, in an archive: static, and without sanitizers, whose runtime is not.
if(NOT CERCO_SANITIZE)
  cerco_program(cerco-guest MAIN src/main/guest_main.cc DEPENDS sandbox STATIC_RUNTIME)
  target_link_options(cerco-guest PRIVATE -Wl,--strip-all)
endif()

# A library in the VMM's box, without sanitizers and without a runtime.
add_library(cerco-vmm-memory MODULE ${CMAKE_SOURCE_DIR}/src/main/vmm_memory.cc)
set_target_properties(cerco-vmm-memory PROPERTIES PREFIX "" SUFFIX ".so")
target_link_libraries(cerco-vmm-memory PRIVATE cerco_flags)
target_compile_options(cerco-vmm-memory PRIVATE -fno-sanitize=all -fno-exceptions -fvisibility=hidden)
target_link_options(cerco-vmm-memory PRIVATE -fno-sanitize=all -nostdlib++ -Wl,--strip-all)

# cerco-init runs inside the sandbox: static, small, without sanitizers, and over a runtime of its own
# (src/main/init_runtime.cc) in place of the C library. What it is made of is this list.
file(GLOB init_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/init/*.cc)
list(FILTER init_sources EXCLUDE REGEX "_test\\.cc$")
foreach(need confine/calls confine/capabilities confine/compile confine/identity confine/isolate confine/ours confine/profile
        confine/seccomp os/duplex os/files os/socket os/sparse tunnel/channel tunnel/serve tunnel/words
        base/error base/fd base/text base/wire)
  list(APPEND init_sources ${CMAKE_SOURCE_DIR}/src/${need}.cc)
endforeach()
add_executable(cerco-init ${CMAKE_SOURCE_DIR}/src/main/init_main.cc ${CMAKE_SOURCE_DIR}/src/main/init_runtime.cc
               ${init_sources})
target_link_libraries(cerco-init PRIVATE cerco_flags_static)

# cerco-isolate runs inside as well, where no library is: static, and without sanitizers in every build.
file(GLOB isolate_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/isolate/*.cc)
list(FILTER isolate_sources EXCLUDE REGEX "_test\\.cc$")
foreach(need confine/calls confine/compile confine/identity confine/isolate confine/profile confine/seccomp os/files base/error base/fd
        base/json base/text)
  list(APPEND isolate_sources ${CMAKE_SOURCE_DIR}/src/${need}.cc)
endforeach()
add_executable(cerco-isolate ${CMAKE_SOURCE_DIR}/src/main/isolate_main.cc ${CMAKE_BINARY_DIR}/isolate_loader.cc
               ${isolate_sources})
target_link_libraries(cerco-isolate PRIVATE cerco_flags)
target_compile_options(cerco-isolate PRIVATE -fno-sanitize=all -ffunction-sections -fdata-sections)
target_link_options(cerco-isolate PRIVATE -fno-sanitize=all -static-pie -Wl,--gc-sections)

# What ./quickstart builds: all that a person needs, and no test.
add_custom_target(programs)
foreach(program cerco cerco-guest cerco-init cerco-isolate cerco-vmm-memory cerco-tunnel cerco-journal cerco-gateway cerco-broker
        cerco-minter cerco-publisher)
  if(TARGET ${program})
    add_dependencies(programs ${program})
  endif()
endforeach()
