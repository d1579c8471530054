import { createHash, createHmac } from 'node:crypto';
import { JWT_SECRETS } from './values.ts';

const UUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
const TIME = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+]00(?::?00)?)?`;
const HTTP_DATE = String.raw`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT`;
const VARYING = new RegExp(
  [
    '(?<basic>Basic [A-Za-z0-9+/=]{8,})',
    String.raw`(?<jwt>eyJ[\w-]+\.[\w-]+\.[\w-]*)`,
    `(?<uuid>${UUID})`,
    `(?<time>${TIME})`,
    `(?<date>${HTTP_DATE})`,
    String.raw`(?<host>127\.0\.0\.1:\d{2,5})`,
    String.raw`(?<epoch>(?<=(?<claim>iat|exp|nbf|created_at)\\*":)\d{10}(?!\d))`,
    String.raw`(?<duration>(?<=(?:elapsed|elapsed_ms|uptime|retryAfter|port)\\*":)[\d.e-]+|(?<=(?:position|chain_index|index|spooled)\\*":"?)\d+(?="?[,}]))`,
    String.raw`(?<signed>(?<=(?:key|hash|previous)\\*":\\*")[0-9a-f]{16,64}(?=\\*")|(?<=webhook-timestamp\\*":\\*")\d{10}|v1,[A-Za-z0-9+/]{43}=|(?<=sec-websocket-key\\*":\\*")[A-Za-z0-9+/]{22}==|(?<=\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$)[\w+/]+\$[\w+/]+)`,
    String.raw`(?<opaque>[\w-]{40,})`,
  ].join('|'),
  'g',
);
const FIXED_UUID = /^0{8}-0000-[47]000-8000-/;
const SECRET = /"(?:client_secret|clientSecret)":"([\w-]{43})"/g;
const MINUTE_MS = 60_000;
const DAYS_40_MS = 40 * 24 * 60 * MINUTE_MS;
const SHOWN = 256 * 1024;

/** Puts names in the place of what is another thing in each run: ids, times, tokens, durations and ports, and of nothing else. */
export class Names {
  readonly #known = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #begunMs = Date.now();
  #place = '';

  /** Ids that appear from here on are named after this place. */
  begin(place: string): void {
    this.#place = place;
  }

  /** A secret that was told becomes one with a name. */
  learnSecrets(text: string): void {
    for (const [, secret = ''] of text.matchAll(SECRET)) this.#known.get(secret) ?? this.#name(secret, 'secret');
  }

  /** A text with names; one that is very long as its length and SHA-256. */
  of(text: string): string {
    const issued = /iat\\*":(\d{10})(?!\d)/.exec(text)?.[1];
    const named = text.replace(VARYING, (...match) => this.#varying(match.at(-1), issued));
    if (named.length <= SHOWN) return named;
    return `<${named.length} characters, SHA-256 ${createHash('sha256').update(named).digest('hex')}>`;
  }

  /** The same of a value, by way of its JSON. */
  value<Value>(value: Value): Value {
    return JSON.parse(this.of(JSON.stringify(value)));
  }

  /** The same where what has no name yet is blank. */
  blank(text: string): string {
    return text.replace(VARYING, (...match) => {
      const { uuid } = match.at(-1);
      if (uuid && !FIXED_UUID.test(uuid)) return this.#known.get(uuid) ?? '<uuid>';
      return uuid ?? '<varying>';
    });
  }

  #varying(groups: Record<string, string | undefined>, issued: string | undefined): string {
    const { basic, jwt, uuid, time, date, host, epoch, claim, duration, signed, opaque } = groups;
    if (basic) return `Basic <${this.of(Buffer.from(basic.slice(6), 'base64').toString()).replaceAll('"', "'")}>`;
    if (jwt) return this.#jwt(jwt);
    if (uuid) return FIXED_UUID.test(uuid) ? uuid : (this.#known.get(uuid) ?? this.#name(uuid, 'uuid'));
    if (time) return this.#time(time, Date.parse(/Z|[+]00/.test(time) ? time : `${time}Z`));
    if (date) return this.#time(date, Date.parse(date));
    if (epoch) return this.#epoch(epoch, claim === 'exp' ? issued : undefined);
    if (duration) return '0';
    if (signed) return '<signed>';
    if (opaque) return this.#known.get(opaque) ?? this.#cursor(opaque);
    return host === '127.0.0.1:1' ? host : '127.0.0.1:<port>';
  }

  #name(value: string, kind: string): string {
    const count = (this.#counts.get(this.#place) ?? 0) + 1;
    this.#counts.set(this.#place, count);
    const name = `<${kind}-${this.#place}.${count}>`;
    this.#known.set(value, name);
    return name;
  }

  #jwt(token: string): string {
    const [head = '', claims = '', signature] = token.split('.');
    const by = Object.entries(JWT_SECRETS).find(
      ([, secret]) => createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url') === signature,
    );
    const parts = [head, claims].map((part) => Buffer.from(part, 'base64url').toString());
    return `<jwt of ${by?.[0] ?? 'nobody'} ${this.of(parts.join(' ')).replaceAll('"', "'")}>`;
  }

  #time(text: string, ms: number): string {
    if (ms < this.#begunMs - MINUTE_MS || ms > Date.now() + DAYS_40_MS) return text;
    return ms <= Date.now() + MINUTE_MS ? '<now>' : '<later>';
  }

  /** Seconds of now are 0, and those of an end the ones since the issue: numbers stay numbers. */
  #epoch(text: string, issued: string | undefined): string {
    if (this.#time(text, Number(text) * 1000) === text) return text;
    return String(issued === undefined ? 0 : Number(text) - Number(issued));
  }

  /** A page cursor is eight bytes of a signature and a place. */
  #cursor(text: string): string {
    const place = Buffer.from(text, 'base64url').subarray(8).toString();
    return /^[\x20-\x7e]*\|[\x20-\x7e]+$/.test(place) ? `<cursor ${this.of(place)}>` : text;
  }
}
