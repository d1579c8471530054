import { jwtVerify } from 'jose';
import { request } from 'undici';
import { type Contender, SIGNING_SECRET, type TokenRequest } from './contenders.ts';

const LIMIT_HEADERS = ['x-ratelimit-limit', 'x-monthlylimit-limit'];
const REFUSALS = [400, 401];

/** What a contender's answer holds beside its access token. */
export interface Checked {
  refreshes: boolean;
  /** The headers say a limit of rate and one of the month. */
  limited: boolean;
}

/**
 * Asks once with the right secret and once with a wrong one.
 * @throws unless the first gives tokens that the common secret verifies, with scopes, and the second is refused.
 */
export async function check({ title, request: asked }: Contender): Promise<Checked> {
  const { status, headers, text } = await ask(asked, asked.clientSecret);
  if (status !== 200) throw new Error(`${title} answered ${status}: ${text}`);
  const { access_token: access, refresh_token: refresh } = JSON.parse(text);
  const { scope } = await claimsOf(access);
  if (typeof scope !== 'string' || scope === '') throw new Error(`${title}: the token has no scope`);
  if (refresh !== undefined) await claimsOf(refresh);
  const refused = await ask(asked, asked.clientSecret.split('').reverse().join(''));
  if (!REFUSALS.includes(refused.status)) throw new Error(`${title} answered a wrong secret ${refused.status}`);
  return { refreshes: refresh !== undefined, limited: LIMIT_HEADERS.every((name) => headers[name] !== undefined) };
}

async function claimsOf(token: string) {
  const { payload } = await jwtVerify(token, Buffer.from(SIGNING_SECRET, 'utf8'), { algorithms: ['HS256'] });
  return payload;
}

async function ask({ url, headers, body }: TokenRequest, secret: string) {
  const answer = await request(url, { method: 'POST', headers, body: body(secret) });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}
