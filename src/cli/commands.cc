// The table of every subcommand: what it is called, what it takes, what carries it out.
#include "cli/cli.h"

namespace cli {
namespace {

const Flag kHelp = {"--help", 'h', "", "this text"};
const Flag kJson = {"--json", 0, "", "print JSON"};
constexpr std::string_view kRunUsage =
    "[FLAGS] -- CMD [ARG]…\n       cerco run [FLAGS] FILE [ARG]…";
// bad flags and policies of what runs a command are "cerco failed before the command"
constexpr int kCommandStatus = 125;

std::vector<Flag> run_flags() {
  return with_policy_flags({
      {"--in", 0, "SRC[:DEST]", "copy a file or folder of the host into the working folder"},
      {"--out", 0, "DIR", "bring out what was made or changed in the working folder"},
      {"--name", 0, "NAME", "a label, unique among runs that are not removed"},
      {"--report", 0, "FILE|fd:N", "write the report of the run as JSON"},
      {"--quiet", 0, "", "no block on standard error about what was refused"},
      {"--strict", 0, "", "refuse risks that isolation.accept does not name"},
      {"--interactive", 'i', "", "accepted and ignored: standard input is always passed on"},
      {"--tty", 't', "", "give the command a terminal, with ours in front of it"},
      {"--detach", 0, "",
       "print the run's id once the command has begun, and do not wait for its end"},
      kHelp,
  });
}

std::vector<Flag> start_flags() {
  return with_policy_flags({
      {"--in", 0, "SRC[:DEST]", "copy a file or folder of the host into the working folder"},
      {"--name", 0, "NAME", "a label, unique among runs that live"},
      {"--report", 0, "FILE|fd:N", "write the report as JSON when the session ends"},
      {"--quiet", 0, "", "no notes on standard error"},
      {"--strict", 0, "", "refuse risks that isolation.accept does not name"},
      kHelp,
  });
}

std::vector<Flag> exec_flags() {
  return {
      {"--timeout", 0, "DURATION", "the time limit of this command: 90s, 10m, 1h"},
      {"--env", 0, "K=V|NAME", "a variable for it; NAME alone is copied from here"},
      {"--cwd", 0, "DIR", "its working folder"},
      {"--report", 0, "FILE|fd:N", "write the report of the command as JSON"},
      {"--quiet", 0, "", "no line on standard error about the limit that ended it"},
      {"--interactive", 'i', "", "accepted and ignored: standard input is always passed on"},
      {"--tty", 't', "", "give the command a terminal, with ours in front of it"},
      kHelp,
  };
}

// One that only exists as a name so far.
Command later(std::string_view name, std::string_view usage, std::string_view about,
              int status = 2) {
  return {.name = name,
          .usage = usage,
          .about = about,
          .flags = {kHelp, kJson},
          .words = Words::anywhere,
          .usage_status = status,
          .act = nullptr};
}

std::vector<Command> make_commands() {
  std::vector<Command> all;
  all.push_back({"run", kRunUsage, "run a command in a sandbox of its own", run_flags(),
                 Words::end_flags, kCommandStatus, run});
  all.push_back({"start", "[FLAGS]",
                 "start a sandbox that commands are run in later, and print its id", start_flags(),
                 Words::anywhere, kCommandStatus, start});
  all.push_back({"exec", "[FLAGS] RUN -- CMD [ARG]…", "run one more command in a run that lives",
                 exec_flags(), Words::anywhere, kCommandStatus, exec});
  all.push_back({"attach",
                 "RUN",
                 "print what a detached run has written and writes, to its end; where it has a "
                 "terminal, type "
                 "at it (Ctrl-P Ctrl-Q leaves it)",
                 {kHelp},
                 Words::anywhere,
                 kCommandStatus,
                 attach});
  all.push_back({"ps",
                 "[-a]",
                 "list the runs that live",
                 {{"--all", 'a', "", "those that have ended as well"}, kHelp, kJson},
                 Words::anywhere,
                 2,
                 ps});
  all.push_back(
      {"kill",
       "[-s SIGNAL] RUN",
       "end a run, or send its command a signal",
       {{"--signal", 's', "SIGNAL", "TERM, INT, …; KILL, the default, ends the run"}, kHelp},
       Words::anywhere,
       2,
       kill});
  all.push_back({"rm",
                 "RUN…",
                 "end runs that live, and remove their reports and output",
                 {kHelp},
                 Words::anywhere,
                 2,
                 rm});
  all.push_back({"gc",
                 "",
                 "remove what runs left that ended without their supervisor",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 gc});
  all.push_back({"cp",
                 "SRC RUN:PATH\n       cerco cp RUN:PATH DST",
                 "copy a file or folder into a run that lives, or out of it",
                 {kHelp},
                 Words::anywhere,
                 2,
                 cp});
  all.push_back({"publish",
                 "RUN PORT[:HOSTPORT]",
                 "let 127.0.0.1 reach a server inside, until the run ends; prints the address",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 publish});
  all.push_back(later("diff", "RUN", "show what a run changed"));
  all.push_back(later("apply", "RUN [PATH]…", "carry a run's changes over to the host"));
  all.push_back(later("discard", "RUN", "drop a run's changes"));
  all.push_back({"policy show", "[RUN | POLICY FLAGS]",
                 "print the effective policy and where each value comes from",
                 with_policy_flags({kHelp, kJson}), Words::anywhere, 2, policy_show});
  all.push_back({"policy apply",
                 "RUN FILE",
                 "put another policy in force in a run that lives",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 policy_apply});
  all.push_back({"policy suggest",
                 "RUN",
                 "the narrowest rules for what a run was refused",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 policy_suggest});
  all.push_back({"policy schema",
                 "",
                 "print the JSON Schema of the policy",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 policy_schema});
  all.push_back({"check", "[--strict] [POLICY FLAGS] [-- CMD [ARG]… | FILE [ARG]…]",
                 "print what a run would do and what it could reach",
                 with_policy_flags(
                     {{"--strict", 0, "", "status 1 for risks that isolation.accept does not name"},
                      kHelp,
                      kJson}),
                 Words::end_flags, 2, check});
  all.push_back(
      {"why", "URL [--method M] [--policy FILE | --run RUN]",
       "say which rule allows or denies a request",
       with_policy_flags({{"--method", 0, "M", "the request's method; default GET"},
                          {"--run", 0, "RUN", "under the policy that is in force in a run"},
                          kHelp,
                          kJson}),
       Words::anywhere, 2, why});
  all.push_back(
      {"doctor", "[POLICY FLAGS]", "say what this host can give and what would do where it cannot",
       with_policy_flags({{"--canary", 0, "", "try a run with planted credentials", Built::not_yet},
                          kHelp,
                          kJson}),
       Words::anywhere, 2, doctor});
  all.push_back(later("attack", "…", "try to get out of a sandbox"));
  all.push_back(
      {"log",
       "[-f] [--run R --type T --since D --host H --verdict V]",
       "print the journal",
       {{"--follow", 'f', "", "go on with what is written from now on"},
        {"--run", 0, "RUN", "events of this run"},
        {"--type", 0, "TYPE", "events of this type; a type that ends in a dot, of all below it"},
        {"--since", 0, "D", "not older than 10m, 2h, 1d, or a time like 2026-01-02T03:04:05Z"},
        {"--host", 0, "HOST", "events about this host"},
        {"--verdict", 0, "V", "allow, deny, reject or audit"},
        kHelp,
        kJson},
       Words::anywhere,
       2,
       log});
  all.push_back(
      {"log show", "ID", "print one event", {kHelp, kJson}, Words::anywhere, 2, log_show});
  all.push_back({"log verify",
                 "[--run RUN] [--key FILE] [--head HEX]",
                 "check the journal's chains and signatures",
                 {{"--run", 0, "RUN", "this run only, beside the host chain"},
                  {"--key", 0, "FILE", "the public key, else the one in the state folder"},
                  {"--head", 0, "HEX", "the head that a report gave"},
                  kHelp,
                  kJson},
                 Words::anywhere,
                 2,
                 log_verify});
  all.push_back({"report",
                 "RUN",
                 "print the report of a run that has ended",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 report});
  all.push_back({"credential ls",
                 "",
                 "list the credentials of live runs",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 credential_ls});
  all.push_back({"credential show",
                 "RUN",
                 "print a run's credentials, without their secrets",
                 {kHelp, kJson},
                 Words::anywhere,
                 2,
                 credential_show});
  all.push_back({"credential revoke",
                 "RUN NAME",
                 "end a credential of a live run at once",
                 {kHelp},
                 Words::anywhere,
                 2,
                 credential_revoke});
  all.push_back({"credential test", "NAME [--url URL] [--method M] [POLICY FLAGS]",
                 "send one request with a credential through a real run",
                 with_policy_flags({{"--url", 0, "URL", "else the first that its binding covers"},
                                    {"--method", 0, "M", "else GET or HEAD"},
                                    kHelp,
                                    kJson}),
                 Words::anywhere, 2, credential_test});
  all.push_back(later("image import", "PATH", "bring in an OCI image layout"));
  all.push_back(later("image ls", "", "list images"));
  all.push_back(later("image rm", "NAME", "remove an image"));
  all.push_back(later("image commit", "RUN NAME", "make an image of a run's disk"));
  all.push_back(
      {"image warm", "host|dir:PATH [POLICY FLAGS]",
       "make a base's image and the guest that microVMs are copied from, ahead of a start",
       with_policy_flags({kHelp}), Words::anywhere, 2, image_warm});
  all.push_back(
      {"proxy",
       "[--listen ADDRESS:PORT]… [--policy FILE] [--allow TARGET]…",
       "serve the gateway alone, as a proxy for code that something else isolates",
       {{"--policy", 0, "FILE", "the policy, TOML or JSON; without it the defaults hold"},
        {"--set", 0, "KEY=VALUE", "one value of the policy, as network.mode=audit"},
        {"--allow", 0, "TARGET", "HOST, HOST:PORT, https://HOST/PATH or preset:NAME"},
        {"--listen", 0, "ADDRESS:PORT", "else 127.0.0.1:3128; HTTP, CONNECT and SOCKS5"},
        {"--token-file", 0, "FILE", "the token that clients show; else a fresh one"},
        {"--ca-out", 0, "FILE", "write the certificate that clients have to trust"},
        {"--env-out", 0, "FILE", "write variables for the clients to a new file, one K=V a line"},
        {"--report", 0, "FILE|fd:N", "write the report there at the end"},
        kHelp,
        kJson},
       Words::anywhere,
       2,
       proxy});
  all.push_back({"version", "", "print the version", {kHelp, kJson}, Words::anywhere, 2, version});
  return all;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kAll = make_commands();
  return kAll;
}

}  // namespace cli
