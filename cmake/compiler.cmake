# Flags that hold for every file of ours: warnings are errors, the binaries are hardened.
add_library(cerco_flags INTERFACE)
target_compile_options(cerco_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough -Wunused -Wno-missing-field-initializers -Wno-gnu-statement-expression
  -Wno-missing-designated-field-initializers -Werror
  -fno-strict-aliasing -fstack-protector-strong)
target_include_directories(cerco_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(cerco_flags INTERFACE FMT_HEADER_ONLY=1 _GNU_SOURCE=1)
target_link_options(cerco_flags INTERFACE -fuse-ld=lld -Wl,-z,relro,-z,now)
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
find_program(CERCO_CCACHE ccache)
if(CERCO_CCACHE)
  # A precompiled header is compared by content, so that ccache may serve files that use one.
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CERCO_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  add_compile_options(-Xclang -fno-pch-timestamp)
endif()
if(CERCO_SANITIZE)
  # fuzzer-no-link: the same objects serve the unit tests and the fuzzers.
  target_compile_options(cerco_flags INTERFACE -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_compile_definitions(cerco_flags INTERFACE CERCO_SANITIZE=1)
  target_link_options(cerco_flags INTERFACE -fsanitize=address,undefined)
endif()
# The statically linked program that runs inside a sandbox: no sanitizers, no exceptions, no C library. Its strings
# are compiled from their header, since the library's own would bring the rest of it.
add_library(cerco_flags_static INTERFACE)
target_compile_options(cerco_flags_static INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  -Wno-gnu-statement-expression -Wno-missing-designated-field-initializers -Werror -fno-strict-aliasing -Os
  -fno-exceptions -fno-rtti -fno-sanitize=all -fno-pie -U_FORTIFY_SOURCE -ffunction-sections -fdata-sections
  -fno-asynchronous-unwind-tables -fno-builtin -fstack-protector-strong -mstack-protector-guard=global)
target_include_directories(cerco_flags_static INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(cerco_flags_static INTERFACE FMT_HEADER_ONLY=1 _GNU_SOURCE=1 _GLIBCXX_EXTERN_TEMPLATE=0)
target_link_options(cerco_flags_static INTERFACE -fuse-ld=lld -static -nostdlib -Wl,--gc-sections
  -Wl,-z,noexecstack -Wl,--strip-all)
# For sources of others that we only compile: same sanitizers, no warnings of ours.
add_library(cerco_flags_loose INTERFACE)
target_compile_options(cerco_flags_loose INTERFACE -w)
if(CERCO_SANITIZE)
  target_compile_options(cerco_flags_loose INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
endif()
