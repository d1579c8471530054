import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Names } from './normalise.ts';

export interface Options {
  token?: string | undefined;
  headers?: Record<string, string | string[]>;
  json?: unknown;
  form?: Record<string, string>;
  body?: string | Buffer;
}

export interface Answer {
  status: number;
  headers: [name: string, value: string][];
  text: string;
  json: ReturnType<typeof JSON.parse>;
}

interface Sent {
  method: string;
  path: string;
  headers: Record<string, string | string[]>;
  body: string | Buffer | undefined;
}

/** An exchange that took place, for the sections and the coverage. */
export interface Done {
  name: string;
  method: string;
  path: string;
  status: number;
  /** Of the bodies as they were on the wire. */
  bytes: { request: number; response: number };
}

/** An exchange that has begun: its name, and what the ids are named after that appear in it. */
interface Place {
  name: string;
  place: string;
}

/** The messages of a socket, each with the number of answers to wait for, and what happens meanwhile. */
export type Messages = readonly [send: string | object, answers: number, during?: () => Promise<unknown>][];

const HOST = 'gate.example';
/** What a browser's page cannot know and a client need not: where an answer ends. */
const SECONDS = /^(?:retry-after|x-(?:ratelimit|monthlylimit)-reset.*)$/i;
/** No answer takes as long. */
const PATIENCE_MS = 20_000;
/** How long the end of a connection takes to be noticed on the other side. */
const NOTICED_MS = 60;

/** Sends requests one after another and keeps each with its answer. */
export class Recorder {
  readonly lines: object[] = [];
  /** By the correlation id of the answer. */
  readonly done = new Map<string, Done>();
  readonly operations = new Set<string>();
  readonly tools = new Set<string>();
  readonly names: Names;
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #taken = new Map<string, number>();
  #begun = 0;
  readonly #prefix: string;

  constructor(url: string, names: Names, prefix = '') {
    this.#url = url;
    this.names = names;
    this.#prefix = prefix;
  }

  /** One exchange. */
  async call(name: string, method: string, path: string, options: Options = {}): Promise<Answer> {
    const place = this.#begin(name);
    const sent = sentOf(method, path, options);
    const answer = await this.#send(sent).catch((cause: unknown) => {
      throw new Error(`${name} has no answer`, { cause });
    });
    this.#keep(place, sent, answer);
    return answer;
  }

  /** The same without a trace, for what a recording waits for; its correlation id tells it from the others. */
  async unrecorded(method: string, path: string, options: Options = {}): Promise<Answer> {
    return this.#send(
      sentOf(method, path, { ...options, headers: { ...options.headers, 'x-correlation-id': 'unrecorded' } }),
    );
  }

  /** Waits, without a trace, until an answer of GraphQL says so. */
  async until(token: string, query: string, isSo: (data: Answer['json']) => boolean): Promise<void> {
    let last: unknown;
    for (let turn = 0; turn < 400; turn += 1) {
      const { json } = await this.unrecorded('POST', '/graphql', { token, json: { query } });
      last = json;
      if (isSo(json.data)) return;
      await sleep(25);
    }
    throw new Error(`waited in vain for ${query}: ${JSON.stringify(last)}`);
  }

  /** An operation of GraphQL over POST. */
  async graphql(name: string, query: string, options: Options & { variables?: object } = {}): Promise<Answer> {
    const { variables, ...rest } = options;
    return this.call(name, 'POST', '/graphql', { json: { query, ...(variables && { variables }) }, ...rest });
  }

  /** A message of MCP. */
  async mcp(name: string, secret: string | undefined, message: unknown, options: Options = {}): Promise<Answer> {
    const headers = { accept: 'application/json, text/event-stream', ...options.headers };
    return this.call(name, 'POST', '/v2/mcp', { token: secret, json: message, ...options, headers });
  }

  /** An event stream: `during` happens once it has so many events, and it is left at so many. */
  async stream(
    name: string,
    options: Options,
    { events, during }: { events: number; during?: [number, () => Promise<unknown>] },
  ) {
    const place = this.#begin(name);
    const accept = { accept: 'text/event-stream', ...options.headers };
    const sent = sentOf('POST', '/graphql', { ...options, headers: accept });
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const req = request(`${this.#url}${sent.path}`, {
      method: sent.method,
      headers: sent.headers,
      agent: false,
      signal,
    });
    req.on('error', () => undefined);
    req.end(sent.body);
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    let text = '';
    let isDuring = during !== undefined;
    for await (const chunk of res) {
      text += String(chunk).replaceAll(/^:\n\n/gm, '');
      const seen = text.split('\n\n').length - 1;
      if (isDuring && during && seen >= during[0]) {
        isDuring = false;
        await during[1]();
      }
      if (seen >= events) break;
    }
    if (signal.aborted) throw new Error(`${name} has fewer than ${events} events: ${text}`);
    // More may have come in the same piece.
    text = text
      .split(/(?<=\n\n)/)
      .slice(0, events)
      .join('');
    req.destroy();
    await sleep(NOTICED_MS);
    this.#keep(place, sent, { ...answerOf(res, text), json: undefined });
  }

  /** A WebSocket: sends each message once the one before has had so many answers, until it is closed or none is left. */
  async socket(
    name: string,
    messages: Messages,
    { protocol = 'graphql-transport-ws', headers = {} }: { protocol?: string; headers?: Record<string, string> } = {},
  ): Promise<void> {
    const place = this.#begin(name);
    const socket = new WebSocket(`${this.#url.replace('http', 'ws')}/graphql`, protocol === '' ? [] : [protocol], {
      headers: { host: HOST, ...headers },
    });
    const told: unknown[] = [];
    const upgrade: { res?: IncomingMessage; text: string } = { text: '' };
    socket.on('upgrade', (res) => void Object.assign(upgrade, { res }));
    socket.on('unexpected-response', async (_req, res) => {
      upgrade.text = (await res.toArray()).join('');
      upgrade.res = res;
      socket.terminate();
    });
    socket.on('error', () => undefined);
    socket.on('message', (data) => told.push(['message', String(data)]));
    const closed = new Promise<void>((resolve) => {
      socket.on('close', (code, reason) => {
        told.push(['close', code, String(reason)]);
        resolve();
      });
    });
    await Promise.race([new Promise((resolve) => socket.once('open', resolve)), closed]);
    for (const [message, answers, during] of messages) {
      if (socket.readyState !== socket.OPEN) break;
      const before = told.length;
      const isAnswered = () =>
        told.length >= before + answers || told.slice(before).some((one) => String(one).includes('"type":"error"'));
      socket.send(typeof message === 'string' ? message : JSON.stringify(message));
      if (during) await during();
      for (let turn = 0; turn < 200 && !isAnswered() && socket.readyState === socket.OPEN; turn += 1) await sleep(10);
    }
    if (socket.readyState === socket.OPEN) socket.close(1000);
    await closed;
    await sleep(NOTICED_MS);
    const { res, text } = upgrade;
    const sent = { method: 'GET', path: '/graphql', headers: { host: HOST, ...headers, protocol }, body: undefined };
    const shaken = (res ? answerOf(res, text) : { headers: [], status: 0, text, json: undefined }) satisfies Answer;
    // Of the random key of the handshake.
    shaken.headers = shaken.headers.filter(([header]) => !/^sec-websocket-accept$/i.test(header));
    this.#keep(
      place,
      sent,
      { ...shaken, text: shaken.text || JSON.stringify(told) },
      messages.map(([message]) => message),
    );
  }

  /** Bytes as they are, where no client would send them; the answer is all that comes until the connection ends. */
  async raw(name: string, bytes: string): Promise<void> {
    const place = this.#begin(name);
    const { hostname, port } = new URL(this.#url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    const whole = socket.toArray({ signal: AbortSignal.timeout(20_000) });
    socket.write(bytes);
    const text = Buffer.concat(await whole).toString('latin1');
    const [head = '', ...bodies] = text.split('\r\n\r\n');
    const [line = '', ...fields] = head.split('\r\n');
    const headers = fields.map((field): [string, string] => [
      field.slice(0, field.indexOf(':')),
      field.slice(field.indexOf(':') + 2),
    ]);
    const body = bodies.join('\r\n\r\n');
    const [method = '', path = ''] = bytes.split(' ');
    const answer = { status: Number(line.split(' ')[1] ?? 0), headers, text: body, json: undefined };
    this.#keep(place, { method, path, headers: {}, body: undefined }, answer, bytes);
  }

  /** A line of a section. */
  section(section: string, exchange: string, value: unknown): void {
    this.lines.push({ section, exchange, value });
  }

  #begin(name: string): Place {
    const full = `${this.#prefix}${name}`.replaceAll('\0', 'NUL');
    const times = (this.#taken.get(full) ?? 0) + 1;
    this.#taken.set(full, times);
    this.#begun += 1;
    const place = `${this.#prefix}${this.#begun}`;
    this.names.begin(place);
    return { name: times === 1 ? full : `${full} (${times})`, place };
  }

  async #send({ method, path, headers, body }: Sent): Promise<Answer> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const req = request(`${this.#url}`, { method, path, headers, agent: this.#agent, signal });
    req.on('error', () => undefined);
    req.end(body);
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    return answerOf(res, Buffer.concat(await res.toArray()).toString('utf8'));
  }

  #keep({ name, place }: Place, sent: Sent, answer: Answer, messages?: unknown): void {
    // Others may have taken place during it.
    this.names.begin(place);
    const { names } = this;
    const bytes = { request: Buffer.byteLength(sent.body ?? ''), response: Buffer.byteLength(answer.text) };
    const named = ([header, value]: [string, string]): [string, string] => {
      if (SECONDS.test(header)) return [header, '<seconds>'];
      if (/^content-length$/i.test(header) && Number(value) === bytes.response) return [header, '<length>'];
      return [header, names.of(value)];
    };
    names.learnSecrets(answer.text);
    const request = {
      method: sent.method,
      path: names.of(sent.path),
      headers: names.value({
        ...sent.headers,
        ...('content-length' in sent.headers && { 'content-length': '<length>' }),
      }),
      ...(sent.body !== undefined && { body: names.of(String(sent.body)) }),
      ...(messages !== undefined && { messages: names.value(messages) }),
    };
    const { status, text } = answer;
    this.lines.push({
      exchange: name,
      request,
      answer: { status, headers: answer.headers.map(named), body: names.of(text) },
    });
    const correlation = answer.headers.find(([header]) => /^x-correlation-id$/i.test(header))?.[1];
    const done = { name, method: sent.method, path: sent.path, status, bytes };
    this.done.set(correlation ?? `none ${name}`, done);
  }
}

function sentOf(method: string, path: string, { token, headers = {}, json, form, body }: Options): Sent {
  const type = json !== undefined ? 'application/json' : form ? 'application/x-www-form-urlencoded' : undefined;
  const text = json !== undefined ? JSON.stringify(json) : form ? new URLSearchParams(form).toString() : body;
  const length = text === undefined ? undefined : String(Buffer.byteLength(text));
  return {
    method,
    path,
    headers: {
      host: HOST,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(type !== undefined && { 'content-type': type }),
      ...(length !== undefined && { 'content-length': length }),
      ...headers,
    },
    body: text,
  };
}

function answerOf(res: IncomingMessage, text: string): Answer {
  const headers: [string, string][] = [];
  for (let index = 0; index < res.rawHeaders.length; index += 2) {
    headers.push([res.rawHeaders[index] ?? '', res.rawHeaders[index + 1] ?? '']);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: res.statusCode ?? 0, headers, text, json };
}
