// What `cerco run` is asked to run: a command after `--`, or a file of the host that is brought
// along.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "cli/cli.h"
#include "workspace/workspace.h"

namespace cli {

struct Invocation {
  std::vector<std::string> argv;
  std::optional<workspace::Incoming> file;  // put into the working folder as well
  bool operator==(const Invocation&) const = default;
};

// `-- CMD ARG…` or `FILE ARG…`. A file starts by its shebang, else by its extension (.py, .js,
// .sh). bad_input where there is neither, or the file is not there or cannot be started so, with
// the form that would do.
[[nodiscard]] base::Result<Invocation> read_invocation(const Parsed& parsed);

// In the isolate tier: SCRIPT ARG…, with or without `--`. The script is brought along and its words
// are what the engine gets. bad_input for what is no script, and for flags that speak of files.
[[nodiscard]] base::Result<Invocation> read_script(const Parsed& parsed);

// Every `--in SRC[:DEST]`. The text as a whole is SRC when it names something that exists.
[[nodiscard]] base::Result<std::vector<workspace::Incoming>> read_incoming(const Parsed& parsed);

// `--name`: the form of the contract, and not that of an id.
[[nodiscard]] base::Status check_name(std::string_view name);

}  // namespace cli
