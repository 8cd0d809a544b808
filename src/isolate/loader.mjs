// Runs inside the engine, before the script: gives it a console, a process and the standard streams,
// and takes away what it is not to have.
//
// Everything that leaves goes as one line of the engine's own console, KIND and text: `o` and `e` are
// text for standard output and error, `O` and `E` bytes (one character each), `x` the exit status.
// Within a line \\ stands for a backslash, \n for a new line, \0 for NUL, which the engine would cut.
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { formatWithOptions, inspect } from 'node:util';

const write = globalThis.console.log.bind(globalThis.console);
const escapes = { '\\': '\\\\', '\n': '\\n', '\0': '\\0' };
const emit = (kind, text) => write(kind + text.toWellFormed().replace(/[\\\n\0]/g, (c) => escapes[c]));

const kUnsettled = 13; // as Node.js ends where a top-level await is never settled

// --- The end ---------------------------------------------------------------------------------------

let status; // process.exitCode
let ended = false;
const status_of = (value) => (value === undefined || value === null ? 0 : Number(value) & 255);

// Whoever reads `x` kills the engine at once, so that nothing after this call is run.
const exit = (code) => {
  if (code !== undefined) status = code;
  const last = status_of(status);
  if (!ended) {
    ended = true;
    try {
      process.emit('exit', last);
    } catch (error) {
      emit('e', describe(error) + '\n');
    }
    write('x' + status_of(status));
  }
  for (;;);
};

const describe = (error) => {
  try {
    return `Uncaught ${inspect(error)}`;
  } catch {
    return 'Uncaught error that cannot be shown';
  }
};

const fail = (error, event) => {
  if (process.listenerCount(event) > 0) {
    process.emit(event, error);
    return;
  }
  emit('e', describe(error) + '\n');
  exit(status_of(status) || 1);
};

// --- Streams and console -----------------------------------------------------------------------------

const latin1 = (bytes) => {
  let text = '';
  for (let at = 0; at < bytes.length; at += 4096) {
    text += String.fromCharCode.apply(null, bytes.subarray(at, at + 4096));
  }
  return text;
};

const output = (text, bytes) => {
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, encoding, done) {
      put(chunk, encoding);
      done();
    },
  });
  const put = (chunk, encoding) => {
    if (typeof chunk === 'string' && /^(utf-?8)?$/i.test(encoding ?? '')) {
      emit(text, chunk);
    } else {
      emit(bytes, latin1(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk));
    }
  };
  // At once and in order with the console, as where a file or a pipe takes it.
  stream.write = (chunk, encoding, done) => {
    if (typeof encoding === 'function') [encoding, done] = [undefined, encoding];
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
      throw new TypeError('write() takes a string or bytes');
    }
    put(chunk, encoding);
    if (typeof done === 'function') queueMicrotask(done);
    return true;
  };
  stream.isTTY = false;
  return stream;
};

let indent = '';
const shown = (args) => {
  const text = formatWithOptions({ colors: false }, ...args);
  return (indent ? indent + text.replaceAll('\n', '\n' + indent) : text) + '\n';
};
const out = (...args) => emit('o', shown(args));
const err = (...args) => emit('e', shown(args));
const counts = new Map();
const times = new Map();
const console = {
  log: out,
  info: out,
  debug: out,
  table: out,
  dirxml: out,
  error: err,
  warn: err,
  dir: (value, options) => emit('o', indent + inspect(value, options) + '\n'),
  trace: (...args) => err(new Error(formatWithOptions({}, ...args)).stack.replace(/^Error/, 'Trace')),
  assert: (holds, ...args) => {
    if (!holds) err('Assertion failed' + (args.length > 0 ? ':' : ''), ...args);
  },
  group: (...args) => {
    if (args.length > 0) out(...args);
    indent += '  ';
  },
  groupEnd: () => {
    indent = indent.slice(2);
  },
  count: (label = 'default') => {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    out(`${label}: ${counts.get(label)}`);
  },
  countReset: (label = 'default') => void counts.delete(label),
  time: (label = 'default') => void times.set(label, Date.now()),
  timeEnd: (label = 'default') => {
    if (times.has(label)) out(`${label}: ${Date.now() - times.get(label)}ms`);
    times.delete(label);
  },
  timeLog: (label = 'default', ...args) => {
    if (times.has(label)) out(`${label}: ${Date.now() - times.get(label)}ms`, ...args);
  },
};
console.groupCollapsed = console.group;

// --- What the script finds ------------------------------------------------------------------------------

const process = globalThis.process;
Object.setPrototypeOf(process, EventEmitter.prototype);
EventEmitter.call(process);

const prepare = (given, input) => {
  let stdin;
  const streams = { stdout: output('o', 'O'), stderr: output('e', 'E') };
  for (const [name, value] of Object.entries({
    ...streams,
    argv: given.argv,
    argv0: given.argv[0],
    env: { ...given.env },
    exit,
    pid: 1,
    title: 'workerd',
    cwd: () => '/workspace',
    emitWarning: (text) => err(`Warning: ${text?.message ?? text}`),
    getBuiltinModule: undefined,
  })) {
    Object.defineProperty(process, name, { value, writable: true, enumerable: true, configurable: true });
  }
  Object.defineProperty(process, 'exitCode', {
    get: () => status,
    set: (code) => {
      status = code;
    },
    enumerable: true,
    configurable: true,
  });
  Object.defineProperty(process, 'stdin', {
    get: () => (stdin ??= Object.assign(Readable.fromWeb(input), { isTTY: false, fd: 0 })),
    enumerable: true,
    configurable: true,
  });
  globalThis.console = console;
  globalThis.fetch = fetch;
  globalThis.require = createRequire(`file://${given.argv[1]}`);
};

// A host that cannot be reached is an error as Node.js gives it, whatever the engine calls it.
const engine_fetch = globalThis.fetch;
const fetch = async (...args) => {
  try {
    return await engine_fetch(...args);
  } catch (error) {
    if (error instanceof TypeError || error?.name === 'AbortError' || error?.name === 'TimeoutError') throw error;
    throw new TypeError('fetch failed', { cause: error });
  }
};

// No memory is shared, so that nothing counts time beside a clock of whole milliseconds; no code but
// JavaScript (the engine refuses to compile any other as well); no cache that nobody keeps.
const take_away = () => {
  for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'caches', 'Cloudflare']) {
    delete globalThis[name];
  }
};

let script; // the module's name
let reached_end = false;
globalThis[Symbol.for('cerco.end')] = () => {
  reached_end = true;
};
let open;
globalThis[Symbol.for('cerco.start')] = new Promise((resolve) => {
  open = resolve;
});

// A module's first steps may do no I/O in this engine; what comes after an await may. So the script,
// which begins with one, waits for a timer of the request.
const run = async (request, env) => {
  take_away();
  script = env.CERCO.module;
  prepare(env.CERCO, request.body);
  globalThis.addEventListener('unhandledrejection', (event) => {
    event.preventDefault?.();
    fail(event.reason, 'unhandledRejection');
  });
  globalThis.addEventListener('error', (event) => fail(event.error, 'uncaughtException'));
  setTimeout(open, 0);
  try {
    await import(script);
  } catch (error) {
    if (!/Top-level await in module is unsettled/.test(error?.message)) fail(error, 'uncaughtException');
  }
  // Never answered: with nothing left to wait for, the engine gives the request up.
  return new Promise(() => {});
};

// Asked once the engine has given the request up.
const finish = () => {
  if (ended) return new Response('');
  ended = true;
  if (!reached_end) {
    emit('e', 'Warning: unsettled top-level await\n');
    status = status_of(status) || kUnsettled;
  }
  try {
    process.emit('exit', status_of(status));
  } catch (error) {
    emit('e', describe(error) + '\n');
    status = status_of(status) || 1;
  }
  write('x' + status_of(status));
  return new Response('');
};

export default {
  fetch: (request, env) => (request.method === 'POST' ? run(request, env) : finish()),
};
