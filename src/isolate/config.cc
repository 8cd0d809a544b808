// The engine's configuration, written for one script.
#include "isolate/isolate.h"
#include "isolate/loader.h"

namespace isolate {
namespace {

// A text literal of Cap'n Proto: escapes as in C.
std::string literal(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  out.reserve(text.size() + text.size() / 8 + 2);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The script waits before its first step and says that it has come to its end, see loader.mjs; its
// lines keep their numbers.
std::string waiting(std::string_view source) {
  std::string text = "await globalThis[Symbol.for('cerco.start')];";
  if (source.starts_with("\xEF\xBB\xBF")) source.remove_prefix(3);
  if (source.starts_with("#!")) text += "//";
  return text.append(source).append("\nglobalThis[Symbol.for('cerco.end')]();\n");
}

std::string given(const Script& script) {
  base::JsonObject env;
  for (const auto& [name, value] : script.env) env.add(name, value);
  base::JsonObject all;
  all.add("module", script.name);
  all.raw("argv", base::json_strings(script.argv));
  all.raw("env", env.text());
  return all.text();
}

}  // namespace

std::string config_text(const Script& script) {
  std::string text =
      "using Workerd = import \"/workerd/workerd.capnp\";\n"
      "const config :Workerd.Config = (\n"
      "  v8Flags = [\"--max-old-space-size=" +
      std::to_string(script.heap_mib) +
      "\"],\n"
      "  services = [\n"
      "    (name = \"script\", worker = .script),\n"
      "    (name = \"internet\", network = (allow = [\"network\", \"local\"],\n"
      "      tlsOptions = (trustBrowserCas = ";
  text += script.authorities ? "true" : "false";
  text +=
      ")))],\n"
      "  sockets = [(name = \"start\", http = (), service = \"script\")]);\n"
      "const script :Workerd.Worker = (\n"
      "  compatibilityDate = \"2025-01-01\", compatibilityFlags = [\"nodejs_compat\"],\n"
      "  globalOutbound = \"internet\",\n"
      "  bindings = [(name = \"CERCO\", json = ";
  text += literal(given(script));
  text += ")],\n  modules = [\n    (name = \"cerco-loader\", esModule = ";
  text += literal(kLoader);
  // In the place of the engine's own: it has nothing in it.
  text += "),\n    (name = \"node:fs/promises\", esModule = \"export {}\"";
  text += "),\n    (name = ";
  text += literal(script.name);
  text += ", esModule = ";
  text += literal(waiting(script.source));
  text += ")]);\n";
  return text;
}

}  // namespace isolate
