"""Weakens one line of the source at a time; the unit tests of its module must notice each."""
# lane: long
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# module, file, the line as it is, the line made weaker
WEAKENINGS = [
    # the microVM tier: its machine, its box, its guest
    ("plan", "machine.cc", "if (emulated && !plan.policy.isolation.allow_emulation) {", "if (false && emulated) {"),
    ("plan", "machine.cc", "need(facts.kvm_lack.empty() || policy.isolation.allow_emulation,", "need(true,"),
    ("plan", "machine.cc", "if constexpr (kOfTheBox<T>) return std::nullopt;", ""),
    ("plan", "machine.cc", "guest.policy.limits = plan.policy.limits;", "guest.policy = plan.policy;"),
    ("plan", "machine.cc", "Landlock{{\"/\"}, {\"/dev\"}},", "Landlock{{\"/\"}, {\"/\"}},"),
    ("sandbox", "microvm/microvm.cc", "lost_ = !answer;", ""),
    ("sandbox", "microvm/microvm.cc", "if (note.kind != GuestSays::answer || note.sequence != request.sequence) {",
     "if (note.kind != GuestSays::answer) {"),
    ("sandbox", "microvm/qemu.cc", "\"lockdown=confidentiality module.sig_enforce=1 ", "\"module.sig_enforce=1 "),
    ("sandbox", "gvisor/stubs.cc", "if (dying_.contains(pid)) stuck = pid;", "stuck = pid;"),
    ("sandbox", "gvisor/stubs.cc", "if ((mask & kKillBit) != 0) return true;", ""),
    ("sandbox", "gvisor/stubs.cc", "dying_ = std::move(dying);", "dying_.insert(dying.begin(), dying.end());"),
    ("sandbox", "microvm/qemu.cc", 'memory == Memory::recorded ? "on" : "off"', '"on"'),
    ("sandbox", "microvm/template.cc", "about.st_uid == ::geteuid() && about.st_nlink == 1", "about.st_nlink == 1"),
    ("sandbox", "microvm/template.cc", "about.st_uid == ::geteuid() && about.st_nlink == 1", "about.st_uid == ::geteuid()"),
    ("sandbox", "microvm/template.cc", "(about.st_mode & 07777) == 0600", "true"),
    ("sandbox", "microvm/template.cc", "if (base::sha256(state) != note.devices_sha256) {", "if (false) {"),
    ("sandbox", "microvm/template.cc", "now - note.made > kTemplateSeconds", "false"),
    ("sandbox", "microvm/template.cc", "if (static_cast<std::uint64_t>(about.st_size) != size) {", "if (false) {"),
    ("sandbox", "microvm/template.cc", "for (const auto& path : paths) all += TRY(identity_of(path));", ""),
    ("confine", "profile.cc", "put(\"clone\", thread_rules());", "put(\"clone\", {{}, kAllow});"),
    # the isolate: what the engine may do, and what its box holds
    ("confine", "isolate.cc", ", low(4, {AT_EMPTY_PATH})}", "}"),
    ("confine", "isolate.cc", "low(0, {kIsolateProgram})", "low(0, {kIsolateProgram, kIsolateProgram - 1})"),
    ("confine", "isolate.cc", "kThread | kNamespacesOfClone, {kThread}", "kNamespacesOfClone, {0}"),
    ("confine", "isolate.cc", 'put("openat", read_only(2));', 'put("openat", read_only(1));'),
    ("confine", "isolate.cc", "low(0, {AF_INET, AF_INET6})", "low(0, {AF_INET, AF_INET6, AF_UNIX})"),
    ("isolate", "config.cc", """if (c == '"' || c == '\\\\') {""", """if (c == '"') {"""),
    ("isolate", "lines.cc", "if (status_ > kMostStatus) status_ = kMostStatus;", ""),
    ("plan", "isolate.cc", "file_name(bind.source) == file_name(bind.target);", "true;"),
    ("plan", "isolate.cc", 'return bind.source == plan.helper_dir + "/engine/workerd";', "return true;"),
    ("plan", "verify_steps.cc", "source == target && plan_.tier != policy::Tier::isolate &&", "source == target &&"),
    ("plan", "verify.cc", "if (isolate != (plan.policy.isolation.tier == policy::Tier::isolate)) {", "if (false) {"),
    ("plan", "verify.cc", "command.argv.front() != kEngineStarter) {", "false) {"),
    # the scratch root
    ("priv", "scratch.cc", "::setfsuid(kNobody);", ""),
    ("priv", "scratch.cc", " && !reads_everything();", ";"),
    ("priv", "scratch.cc", "if (first < kFirstLease || workload < 2", "if (workload < 2"),
    ("priv", "disk.cc", "done = ::fallocate(file, 0, 0, status.st_size);", "done = 0;"),
    ("os", "sparse.cc", "if (!hole_) return {};", "return {};"),
    ("plan", "verify_steps.cc", "TRY(base_source(step.source, step.target));", ""),
    ("plan", "verify_steps.cc", "(path == \"/\" && scratch);", "path == \"/\";"),
    ("plan", "verify_steps.cc", "if (plan_.policy.filesystem.root != policy::RootMode::scratch) {", "if (false) {"),
    ("plan", "verify_protections.cc", "(root->store == Store::image) == scratch &&", ""),
    ("plan", "requirements.cc", "need(tier == policy::Tier::container,", "need(true,"),
    ("plan", "requirements.cc", "need(!host.base_stacked,", "need(true,"),
    ("plan", "limits.cc", "if (found == host_.controllers.end() || found->second.kind != CgroupKind::v2) {", "if (found == host_.controllers.end()) {"),
    ("plan", "limits.cc", "if (host_.disks.empty()) {", "if (false) {"),
    ("gateway", "http_session.cc", "if (counted) count(asked, 1);\n  if (counted && !asked.handling.bodies.empty() && !co_await look_into_body(asked)) {\n    count(asked, -1);\n    co_return Next::end;\n  }",
     "if (counted && !asked.handling.bodies.empty() && !co_await look_into_body(asked)) co_return Next::end;\n  if (counted) count(asked, 1);"),
    # the gateway in a crowd, and what a proxy leaves to others
    ("gateway", "core.h", "crowded() ? os::Queue::tight : os::Queue::tuned", "os::Queue::tuned"),
    ("gateway", "target.cc", "connection_.core.bound_queue(socket->get());", ""),
    ("cli", "proxy_policy.cc", "if (effective.policy.audit.exec == policy::Need::required) {", "if (false) {"),
    ("cli", "proxy_policy.cc", "if (action != policy::Action::freeze) continue;", "continue;"),
    # policy: which requests a rule allows
    ("policy", "counting.cc", 'return known == "TRACE" ||', 'return known == "TRACES" ||'),
    ("policy", "counting.cc", 'if (!rule.encoded_slash && path.contains("%2F")) return false;', ""),
    ("policy", "counting.cc", "if (value != wanted.second) return false;", ""),
    ("policy", "counting.cc", "if (narrow > best) out.clear();", ""),
    ("policy", "counting.cc", "return path_matches(one, request.path) || path_matches(one, loosest);", "return path_matches(one, request.path);"),
    ("policy", "match.cc", "return path_matches(pattern, request.path) && path_matches(pattern, loosest);",
     "return path_matches(pattern, request.path);"),
    ("policy", "match.cc", 'if (judgement.guard == Guard::never) return refuse("range", "");', ""),
    ("policy", "match.cc", 'if (!blocked_name(host).empty()) return refuse("blocked-name", "");', ""),
    ("policy", "match.cc", 'if (connection_denied(policy, host, request.port)) return refuse("deny-rule", "");', ""),
    ("policy", "match.cc", "if ((!open && !audit) || request.host.name == kHostName) return refusal;", "if (!open && !audit) return refusal;"),
    ("policy", "match.cc", "const bool told = web || looks_inside(policy, request.host.name, request.port);", "const bool told = web;"),
    ("policy", "match.cc", "named.empty() && is_public_open(policy));", "is_public_open(policy));"),
    ("policy", "match.cc", "if (!fixable || policy.network.mode != NetworkMode::audit)", "if (policy.network.mode != NetworkMode::audit)"),
    ("policy", "match.cc", "if (request_denied(policy, request, methods))", "if (false && request_denied(policy, request, methods))"),
    ("policy", "match.cc", "if (request.scheme != Scheme::tls && !(request.scheme == Scheme::http && host == kHostName))\n    return false;", ""),
    ("policy", "presets.cc", 'if (member.key == "egress") continue;', 'if (member.key == "egress" || member.key == "limits") continue;'),
    ("policy", "presets.cc", 'if (rule.find("preset") == nullptr) continue;', "continue;"),
    ("cli", "presets.cc", "if (!ours || (info.st_mode & S_IWOTH) != 0) {", "if (!ours) {"),
    ("cli", "presets.cc", "if (place.tls) out += \"tls_only = true\\n\";", ""),
    ("cli", "suggestion.cc", "if (parsed && parsed->policy.egress.size() == 1)", "if (parsed && !parsed->policy.egress.empty())"),
    ("policy", "path.cc", 'if (name == "." || name == "..") return bad_path("a dot segment");', ""),
    ("policy", "path.cc", "segment.substr(0, segment.find(';'))", "segment"),
    ("policy", "path.cc", "TRY(check_utf8(decoded));", "(void)check_utf8(decoded);"),
    ("policy", "path.cc", "return wanted.size() == given.size();", "return wanted.size() <= given.size();"),
    ("policy", "address.cc", 'if (is_isatap(address))', "if (false && is_isatap(address))"),
    ("policy", "address.cc", 'if (!is_global_unicast(address))', "if (false && !is_global_unicast(address))"),
    ("policy", "address.cc", '{"2002::", 16, "6to4", 2, 0},', '{"2002::", 16, "6to4", 4, 0},'),
    ("policy", "address.cc", "static_cast<std::uint8_t>(0xff00U >> rest)", "static_cast<std::uint8_t>(0xfe00U >> rest)"),
    # gateway: the address that is dialled
    ("gateway", "session.cc", "if (target.literal) return literal_problem(core, target, hello);",
     "if (target.literal) return false ? literal_problem(core, target, hello) : std::string();"),
    ("gateway", "guard.cc", 'if (within(local.own, plain)) return "own-address";', ""),
    ("gateway", "guard.cc", "if (judgement.guard == policy::Guard::never) return judgement.reason;", ""),
    ("gateway", "guard.cc", "const policy::Address address = as_dialled(told);", "const policy::Address& address = told;"),
    ("gateway", "http_judge.cc", "if (target->host != before.host || target->port != before.port) drop_upstream();",
     "if (false && target->host != before.host) drop_upstream();"),
    ("gateway", "session.cc", "if (core.cut || !target.problem.empty()) {", "if (core.cut) {"),
    ("gateway", "address_book.cc", "const bool full = wildcard && core.wildcard_names >= core.limits.wildcard_names;", "const bool full = false;"),
    ("gateway", "exchange.cc", 'if (http::carries_dns(head.fields)) return fail("dns-over-https");', ""),
    ("gateway", "exchange.cc", "if (client_.broken()) {", "if (false) {"),
    ("gateway", "h2_upstreams.cc", "if (fit && current && one->users == users) return one;", "if (fit && current) return one;"),
    ("gateway", "h2_session.cc", "if (connection_.stopped() || core_.connections.size() >= core_.limits.connections) {", "if (connection_.stopped()) {"),
    ("gateway", "h2_session.cc", 'client_->framing().go_away(http::H2Code::calm, "h2-window");', ""),
    ("gateway", "core.cc", "parent_->credentials.push_back(credential);", ""),
    # http: what a peer of HTTP/2 may send
    ("http", "h2_connection.cc", 'if (c.block_ > kMaxH2Block) c.go_away(H2Code::calm, "h2-head");', ""),
    ("http", "h2_connection.cc", "if (c.list_ > kMaxH2List) {", "if (false) {"),
    ("http", "h2_connection.cc", 'if (is_control(*head) && !c.control_.take()) c.go_away(H2Code::calm, "h2-control");', ""),
    ("http", "h2_connection.cc", "if (head->type == NGHTTP2_RST_STREAM && !c.resets_.take()) {", "if (false) {"),
    ("http", "h2_connection.cc", "nghttp2_option_set_no_auto_window_update(options.get(), 1);", ""),
    ("http", "h2_connection.cc", "side_ == H2Side::client ? NGHTTP2_NV_FLAG_NO_INDEX", "false ? NGHTTP2_NV_FLAG_NO_INDEX"),
    ("http", "h2_text.cc", 'if (field.name == "host" && field.value != authority) add_line(text, "host", field.value);', ""),
    ("http", "h2_text.cc", "if (scheme == kScheme) return std::string(path);", "return std::string(path);"),
    ("http", "body.cc", "return which == Trailers::grpc && !among(name, kHeadOnly) &&", "return which == Trailers::grpc &&"),
    ("http", "tls.cc", "const std::string_view ours = fit_for_http2(connection) ? kAlpnBoth : kAlpn;", "const std::string_view ours = true || fit_for_http2(connection) ? kAlpnBoth : kAlpn;"),
    ("http", "socks.cc", "if (byte(bytes, 1) != kConnect) {", "if (false && byte(bytes, 1) != kConnect) {"),
    ("http", "socks.cc", 'if (size == 0) return refuse(SocksReply::failed, "host", "the host name is empty");', ""),
    # a change of the policy, and what it ends; proxies
    ("plan", "change.cc", 'if (!may_change(key)) return fixed(key, "it cannot change in a running sandbox");', "(void)key;"),
    ("plan", "change.cc", "if (!same_but_reach(*found, credential)) {", "if (false && !same_but_reach(*found, credential)) {"),
    ("plan", "change.cc", "if (policy::terminates(wanted) && !running.terminates) {", "if (false && policy::terminates(wanted)) {"),
    ("gateway", "change.cc", "if (!verdict.allow) return false;", ""),
    ("gateway", "change.cc", "return address_passes(core, connection, carried.request, verdict);", "(void)address_passes; return true;"),
    ("gateway", "change.cc", "core.used = carry_over(core.past.back(), plan.policy);", "core.used = Core::make_used(plan.policy); (void)carry_over;"),
    ("gateway", "target.cc", "vetted.direct = core.upstream_proxy == nullptr || !core.upstream_proxy->serves(target.host);", "vetted.direct = false;"),
    ("gateway", "upstream_proxy.cc", 'if (*status == 407) co_return no_way("proxy-auth");', ""),
    ("gateway", "proxy_token.cc", "if (field == nullptr) return false;", "if (field == nullptr) return true;"),
    ("gateway", "http_judge.cc", "if (!shows_token(core_, dropped)) {", "if (false && !shows_token(core_, dropped)) {"),
    ("gateway", "proxy.cc", "if (!taken) {", "if (false && !taken) {"),
    ("broker", "vault.cc", "if (!std::ranges::equal(before, now, {}, &policy::Credential::name, &policy::Credential::name)) {",
     "if (false && before != now) {"),
    # http: what two parsers could read differently, and where a secret shows
    ("http", "request.cc", 'if (lengths > 0) return reject(400, "framing", "Content-Length and Transfer-Encoding together");', ""),
    ("http", "request.cc", 'if (head.minor == 0) return reject(400, "framing", "Transfer-Encoding in HTTP/1.0");', ""),
    ("http", "request.cc", "if (lengths > 1 || !length)", "if (!length)"),
    ("http", "request.cc", 'if (std::ranges::count(fields, "host", &Field::name) > 1)', "if (false)"),
    ("http", "request.cc", "if (overrides_method(query))", "if (false && overrides_method(query))"),
    ("http", "request.cc", "if (path[at + 1] == '0' || path[at + 1] == '1') return false;", ""),
    ("http", "redact.cc", "add_base64(secret, placeholder, drafts);", "if (false) add_base64(secret, placeholder, drafts);"),
    ("http", "redact.cc", 'percent_encoded(secret, "0123456789abcdef")', 'percent_encoded(secret, "0123456789ABCDEF")'),
    ("http", "redact.cc", "const std::size_t open = text.size() - redaction_->pending(text, nullptr);", "const std::size_t open = text.size();"),
    ("http", "redact.cc", "  mask_end(out, done.rest);", "  if (false) mask_end(out, done.rest);"),
    ("http", "redact.cc", "add_hex(secret, placeholder, drafts);", "if (false) add_hex(secret, placeholder, drafts);"),
    ("http", "placeholder.cc", "round < 3", "round < 1"),
    ("http", "placeholder.cc", 'return bound ? with_segment(head.target, slot.segment, "") : head.target;', "return bound ? std::string() : head.target;"),
    ("http", "json_members.cc", "if (depth > kDeepest) return false;",
     'if (false && depth > kDeepest) return false;'),
    ("gateway", "canaries.cc", "if (auto sight = in_name(field.name)) {", "if (auto sight = in_name(\"\")) {"),
    ("gateway", "exchange.cc", 'if (shows_canary(part->content)) return fail("canary");', ""),
    ("gateway", "dns.cc", "if (const auto sight = core_.canaries.in_name(host->name)) {", "if (const auto sight = core_.canaries.in_name(\"\")) {"),
    ("gateway", "relay.cc", "if (canary_) over_ = State::seen;", ""),
    ("gateway", "postgres.cc", "if (!core_.postgres_keys.contains(key_of(startup_.key)))", "if (false)"),
    ("gateway", "postgres.cc", "proof->kind != Authentication::kSaslFinal || !scram.proves(proof->data)", "proof->kind != Authentication::kSaslFinal"),
    ("gateway", "postgres.cc", 'co_return core_.credentials.stands_for(credential_, placeholder_) ? "" : "own-credential";', 'co_return std::string();'),
    ("gateway", "postgres.cc", 'if (*word != "S" || !context ||', "if (!context ||"),
    ("http", "scram.cc", "challenge.rounds >= kLeastRounds && ", ""),
    ("http", "scram.cc", "if (!nonce->starts_with(nonce_) || nonce->size() == nonce_.size())", "if (!nonce->starts_with(nonce_))"),
    ("plan", "canaries.cc", 'if (!planted) return refuse(fmt::format("the canary {} is not planted", path), "a WriteFile");', "(void)planted;"),
    ("gateway", "credentials.cc", "  handling.strip_query = target_without_own(head) != head.target;", ""),
    ("gateway", "credentials.cc", "if (own && bound.own != policy::Own::pass) {", "if (false) {"),
    ("gateway", "credentials.cc", "if (!hands_out_keys(request.path)) return true;", "return true;"),
    ("gateway", "token_endpoints.cc", "return !named.contains('*') && named == last;",
     'return true || named == last;'),
    ("gateway", "http_way.cc", "const bool same = users_of(asked.handling) == users_;", "const bool same = true;"),
    ("gateway", "http_inject.cc", 'if (content.size() > kMostFieldBody) problem = "credential-body-size";', ""),
    # broker: who gets the secret
    ("broker", "vault.cc", 'if (held.revoked) return "revoked";', ""),
    ("broker", "vault.cc", "clock_() - started_ >= *credential.lifetime_ms", "clock_() - started_ > *credential.lifetime_ms"),
    ("broker", "recipe.cc", "if (told.status == 200 || told.status == 201) return {};", "return {};"),
    ("broker", "recipe.cc", "if (base::has_control(key) || key.contains(' '))", "if (key.contains(' '))"),
    ("broker", "recipe.cc", '!of.empty() && of != "selected"', "false"),
    ("broker", "jwt.cc", "return rsa && EVP_PKEY_get_bits(key) >= kLeastRsaBits;", "return rsa;"),
    ("broker", "mints.cc", "const bool held = state.ends_ms > now;", "const bool held = state.ends_ms > 0;"),
    ("broker", "mints.cc", "(void)push_revocation(index, minted.secret);", ""),
    ("gateway", "fetch.cc", 'if (content_.size() > kMostTold) co_return "size";', ""),
    ("gateway", "fetch.cc", "if (!ended_ || !body.closed()) co_return \"answer\";", "if (!ended_) co_return \"answer\";"),
    ("http", "members.cc", "std::ranges::count(*members, name, &JsonMember::name) != 1", "std::ranges::count(*members, name, &JsonMember::name) == 0"),
    ("http", "members.cc", "if (text.find(open, to) != std::string_view::npos) return std::nullopt;", ""),
    ("policy", "credentials.cc", "service = out.inject.service; hands_out_keys(service)", "service = out.inject.service; false && hands_out_keys(service)"),
    ("broker", "vault.cc", "if (held.uses >= credential.uses)", "if (held.uses > credential.uses)"),
    ("broker", "vault.cc", "request.placeholder.empty() ? credential.require : !known", "request.placeholder.empty() && !known ? credential.require : false"),
    # journal: what is noticed of a changed record
    ("journal", "verify.cc", 'if (members.text("prev") != head_) return "it does not follow the line before";', ""),
    ("journal", "verify.cc", 'if (members.text("run") != run_) return "it belongs to another run";\n    if (!line.starts_with(start))',
     "if (!line.starts_with(start))"),
    ("journal", "verify.cc", "if (!key_.signed_by(checkpoint_text(run_, seq_, head_), members.text(\"sig\"))) {", "if (false) {"),
    ("journal", "verify.cc", "if (recorded.events > seq_) {", "if (false) {"),
    ("journal", "verify.cc", "if (final(recorded) && recorded.events != seq_) {", "if (false) {"),
    # confine: the calls that a workload may make
    ("confine", "profile.cc", "low(1, {TIOCSTI, TIOCLINUX,", "low(1, {TIOCLINUX,"),
    ("confine", "profile.cc", 'if (name == "unshare") return namespaces(kNamespacesOfUnshare);', 'if (name == "unshare") return {{}, kAllow};'),
    ("confine", "profile.cc", "masked(1, SECCOMP_FILTER_FLAG_NEW_LISTENER, {0})", "masked(1, 0, {0})"),
    ("confine", "profile.cc", "masked(mode, S_IFMT, {0, S_IFREG, S_IFIFO, S_IFSOCK})", "masked(mode, S_IFMT, {0, S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR})"),
    # workspace: what comes out of a sandbox
    ("workspace", "path.cc", "if (ups > depth) return false;", "if (false && ups > depth) return false;"),
    ("workspace", "path.cc", 'return part.empty() || part == "." || part == "..";', 'return part.empty() || part == ".";'),
    ("workspace", "take.cc", "constexpr unsigned kModes = 0777;", "constexpr unsigned kModes = 07777;"),
    ("workspace", "take.cc", "if (size > caps_.bytes - bytes_) {", "if (size > caps_.bytes) {"),
    ("workspace", "take.cc", 'if (path != from_ && !path.starts_with(from_ + "/")) return false;', ""),
    ("workspace", "take.cc", "link_stays_inside(entry.path.substr(as_.size() + 1), entry.text);", "link_stays_inside(entry.path, entry.text);"),
    # init and priv: the groups of single commands
    ("init", "command.cc", "if (const auto done = enter_groups(prepared); !done) return done.error();",
     'if (const auto done = enter_groups(prepared); false && !done) return done.error();'),
    ("init", "session.cc", "const bool stays = number == EEXIST && existing == Existing::replace &&", "const bool stays = (number == EEXIST || existing == Existing::replace) &&"),
    # a published port: what its processes may do, and how much they hold
    ("init", "connection.cc", "if (give_up_all(connect.uid, connect.gid)) error = reach(connect, server);", "error = reach(connect, server);"),
    ("init", "connection.cc", "if (error == 0 && !confine::install(confine::filter(confine::Own::connection))) error = EPERM;", ""),
    ("init", "connection.cc", "return errno == EADDRINUSE || errno == EACCES ? 0 : errno;", "return 0;"),
    ("init", "terminal.cc", "while (!over() && ended_ && !dry_ && shown_.empty()) {", "while (false) {"),
    ("init", "terminal.cc", "if (shown_.empty() && !dry_ && !let_go_) of_master |= POLLIN;", "if (shown_.empty() && !dry_) of_master |= POLLIN;"),
    ("publish", "serve.cc", "const bool more = connections_.size() < kMostConnections;", "const bool more = true;"),
    ("publish", "serve.cc", "if (connection.over && !whole) (void)os::reset_at_close(connection.outside.get());", ""),
    ("os", "duplex.cc", "if (!failed_ && !out.ended && out.held.empty()) read(out);", "if (!failed_ && !out.ended) read(out);"),
    ("os", "terminal.cc", "set_modes(kept.terminal, TCSAFLUSH, kept.old);", "set_modes(kept.terminal, TCSANOW, kept.old);"),
    ("supervisor", "parts.cc", "if (!at || at->v6 || at->address[0] != 127) {", "if (!at || at->v6) {"),
    ("priv", "cgroup_end.cc", "if (below) count += TRY(signal_all(below->get()));", ""),
    # supervisor: what is believed of a sandbox
    ("supervisor", "believable.cc", "return how && ended.cpu_ms <= sandbox::kMostCounted;", "return how;"),
    ("workspace", "take.cc", "if (std::chrono::steady_clock::now() - began_ > patience) {", "if (false) {"),
    ("host", "base_image.cc", "if (closed) closed_.push_back(shown.substr(1));", ""),
    # supervisor: what is kept of a run
    ("supervisor", "run_folder.cc", "if (live->alive || ::flock(live->file.get(), LOCK_EX | LOCK_NB) != 0) return false;", ""),
    ("supervisor", "output_ring.cc", "if (segments_.size() > kKept / kSegment + 1) {", "if (false) {"),
    # plan: what the supervisor carries out for a caller
    ("plan", "verify_steps.cc", "if (now < last || (now == last && now != kTreeRank)) {", "if (now < last || (false && now == last && now != kTreeRank)) {"),
    ("plan", "verify_steps.cc", 'if (parent != "/" && !folders_.contains(parent)) {', "if (false) {"),
    ("plan", "verify_steps.cc", "if (!refused.empty())", "if (false)"),
    ("plan", "verify_protections.cc", "disk->store == store &&",
     '(true || disk->store == store) &&'),
    # as an ordinary user: whose uid is mapped, and what of process 1 its neighbours reach
    ("priv", "own_space.cc", "if (::geteuid() == 0) return", "if (false) return"),
    ("confine", "profile.cc", 'if (name == "prlimit64") return but_not_for_init(0, prlimit_rules());',
     'if (name == "prlimit64") return prlimit_rules();'),
    ("confine", "profile.cc", 'if (name == "setpriority") return priority_rules(PRIO_USER);',
     'if (name == "setpriority") return {{}, kAllow};'),
    ("confine", "profile.cc", 'put("openat", read_only(2));', 'put("openat", read_only(1));'),
    ("policy", "environment.cc", "word = follows ? std::string(kRedacted)",
     'word = follows && false ? std::string(kRedacted)'),
    ("plan", "limits.cc", "if (std::ranges::any_of(held_.cgroup.groups, counts)) return;",
     'if (std::ranges::any_of(held_.cgroup.groups, counts) || true) return;'),
    ("supervisor", "ending.cc", 'if (facts.cut == Cut::processor_time) hit.emplace_back("cpu");', ""),
    # tunnel: what the host believes of a sandbox
    ("tunnel", "words.cc", "if (size > kMostBody) return std::unexpected(Nonsense{});", ""),
    ("tunnel", "channel.cc", "if (word.amount > kWindow - credit_) return false;", ""),
    ("tunnel", "channel.cc", "if (got_end_ || cost(", "if (cost("),
    ("tunnel", "serve.cc", "if (!word.opens.empty()) return false;", ""),
    ("supervisor", "ending.cc", "if (by_host) return 128 + SIGKILL;", ""),
    ("confine", "identity.cc", "if (is_already(uid, gid)) return {};",
     'if (is_already(uid, gid) || uid != ~0U) return {};'),
]


def run(tree, *argv, guard=1800):
    return subprocess.run(argv, cwd=tree, capture_output=True, text=True, timeout=guard)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the source that may be changed, with its unit tests built."""
    folder = tmp_path_factory.mktemp("weakened") / "cerco"
    subprocess.run(["git", "checkout-index", "--all", f"--prefix={folder}/"], cwd=ROOT, check=True)
    assert run(folder, "cmake", "--preset", "sanitize").returncode == 0
    modules = sorted({row[0] for row in WEAKENINGS})
    built = run(folder, "cmake", "--build", "--preset", "sanitize", "--target", *[f"{module}_tests" for module in modules])
    assert built.returncode == 0, built.stdout[-3000:]
    for module in modules:
        whole = run(folder, f"build-sanitize/{module}_tests")
        assert whole.returncode == 0, f"{module}_tests pass before anything is weakened:\n{(whole.stdout + whole.stderr)[-3000:]}"
    return folder


@pytest.mark.parametrize("module, file, line, weaker", WEAKENINGS, ids=[f"{row[0]}-{i}" for i, row in enumerate(WEAKENINGS)])
def test_a_weakened_line_is_noticed(tree, module, file, line, weaker):
    path = tree / "src" / module / file
    text = path.read_text()
    assert text.count(line) >= 1, f"{path.name} has no such line any more: mend this table"
    path.write_text(text.replace(line, weaker, 1))
    try:
        built = run(tree, "cmake", "--build", "--preset", "sanitize", "--target", f"{module}_tests")
        assert built.returncode == 0, "a weakened line must compile: " + built.stdout[-2000:]
        tested = run(tree, f"build-sanitize/{module}_tests", "--gtest_fail_fast", "--gtest_brief=1")
        assert tested.returncode != 0, f"nobody noticed: {line}  became  {weaker or 'nothing'}"
    finally:
        path.write_text(text)
