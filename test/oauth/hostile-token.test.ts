import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { importJwtKeys } from '../../src/access/tokens/token-authenticator.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { openSocket, readAnswer } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { apiClaims, signed, signedText } from '../support/oauth/jwt.ts';
import { basicOf, postForm } from '../support/oauth/requests.ts';

/** Four characters are three bytes. */
const CUTS = inject('isThorough') ? 8 : 5;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** The service's clock stands: a token that ends in a second is good however long a request takes. */
const NOW_MS = Date.now();
const NOW = Math.floor(NOW_MS / 1000);

const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => NOW_MS } }));
let pair: { access_token: string; refresh_token: string };
beforeAll(async () => {
  const json = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
  pair = (await p.call('POST', '/v2/oauth/token', { json })).json;
});

const list = (token: string) => p.call('GET', '/v1/accounts', { token });
const introspect = (token: string) => postForm(p, '/v2/oauth/introspect', { token }, basicOf(p.demo.client));
const revoke = (token: string) => p.call('POST', '/v2/oauth/revoke', { json: { token, ...p.demo.client } });
const refresh = (refresh_token: string) =>
  p.call('POST', '/v2/oauth/token', { json: { grant_type: 'refresh_token', ...p.demo.client, refresh_token } });
const secretOf = (tokenClass: 'discover' | 'legacy') => p.service.context.secrets.jwt[tokenClass].current;

/** Every place where a token is shown (test/gateway/token-matrix.test.ts: every endpoint, by token), and what it says of one that is none. */
const places: [string, (token: string) => Promise<Answer>, number, string][] = [
  ['Authorization', list, 401, envelope('unauthorized')],
  ['the refresh grant', refresh, 401, envelope('invalid_request')],
  ['introspection', introspect, 200, '{"active":false}'],
  ['revocation', revoke, 200, '{}'],
];

async function statusOf(token: string): Promise<number> {
  return (await list(token)).status;
}

async function stillGood(): Promise<void> {
  expect(await statusOf(pair.access_token)).toBe(200);
  expect((await introspect(pair.refresh_token)).json.active).toBe(true);
}

describe.each(places.map((place, turn) => [...place, turn] as const))(
  'a hostile token sent by %s',
  (name, show, status, text, turn) => {
    /** In a quick run a token is of the use that is good here, but for what makes it hostile. */
    const uses = inject('isThorough') ? ['api', 'refresh'] : [name === 'Authorization' ? 'api' : 'refresh'];

    async function refused(token: string): Promise<void> {
      const answer = await show(token);
      expect([token.slice(-20), answer.status, answer.text]).toEqual([token.slice(-20), status, text]);
    }

    it('7.6-02 D3-25: is rejected with any single character changed', async () => {
      const token = name === 'Authorization' ? pair.access_token : pair.refresh_token;
      for (let at = 0; at < token.length; at += 1) {
        // In turn at each place, but for the last ones, of which several spellings are one signature.
        if (!inject('isThorough') && (at + turn * 5) % 20 !== 0 && at < token.length - 3) continue;
        const others = [...ALPHABET.replace(token.charAt(at), ''), '.'];
        const other = others[(at * 31) % others.length] ?? '.';
        await refused(`${token.slice(0, at)}${other}${token.slice(at + 1)}`);
      }
      await stillGood();
    });

    it('7.6-02 D3-25: is rejected when truncated, concatenated, padded or re-encoded', async () => {
      const { access_token, refresh_token } = pair;
      for (const token of [access_token, refresh_token]) {
        const [header = '', payload = '', signature = ''] = token.split('.');
        const signed = `${header}.${payload}`;
        for (const joined of [
          `${signed}.`,
          signed,
          `${header}..${signature}`,
          `.${payload}.${signature}`,
          'a.b.c.d.e',
        ]) {
          await refused(joined);
        }
        for (const end of [`.${signature}`, '=', '==', 'A', '.', '%3D']) await refused(`${token}${end}`);
        for (let length = 1; length < CUTS; length += 1) await refused(token.slice(0, -length));
        const last = ALPHABET.indexOf(token.slice(-1));
        for (const low of [1, 2, 3]) await refused(token.slice(0, -1) + ALPHABET.charAt((last & ~3) | low));
      }
      const [[accessHeader, , accessSignature], [, refreshPayload]] = [
        access_token.split('.'),
        refresh_token.split('.'),
      ];
      await refused(`${accessHeader}.${refreshPayload}.${accessSignature}`);
      await stillGood();
    });

    /** Members of a header, with values of which none may pass. */
    const headers: Record<string, unknown[]> = {
      alg: ['none', 'None', 'hs256', 'RS256', 'HS384', 'dir', undefined, ['HS256']],
      crit: [['x'], ['b64'], [], 'exp'],
      kid: [['user.0123456789abcdef'], 0, null, {}, '', '__proto__', '../../dev/null'],
    };

    it.each(Object.entries(headers))(
      '7.6-02 D3-01: is rejected with the header %s set to %j',
      async (member, values) => {
        for (const token_use of uses) {
          const claims = apiClaims(p, { token_use });
          const more = member === 'crit' ? { x: 1, b64: false } : {};
          for (const value of values) await refused(signed(p, claims, { header: { ...more, [member]: value } }));
        }
      },
    );

    it('7.6-02 D3-01 D3-24: is rejected with the kid or the secret of another class, or another algorithm', async () => {
      const { byKeyId } = await importJwtKeys(p.service.context.secrets.jwt);
      const kids = [...byKeyId.values()].filter(({ tokenClass }) => tokenClass !== 'user').map(({ keyId }) => keyId);
      for (const token_use of uses) {
        const claims = apiClaims(p, { token_use });
        for (const kid of kids.flatMap((keyId) => [keyId, `${keyId}x`, 'user.0000000000000000'])) {
          await refused(signed(p, claims, { header: { kid } }));
        }
        const { pepper } = p.service.context.secrets;
        const secrets = [secretOf('discover'), pepper.current, 'another secret, as long as the right one'];
        if (token_use === 'refresh') secrets.push(secretOf('legacy'));
        for (const secret of secrets) await refused(signed(p, claims, { secret }));
        await refused(signed(p, claims, { header: { alg: 'HS512' }, hash: 'sha512' }));
      }
    });

    /** Claims, each written by hand in the place of the good one. */
    const payloads: Record<string, string[]> = {
      exp: ['1e400', '-1e400', '-1', `"${NOW + 60}"`, 'NaN', `[${NOW + 60}]`, 'true', 'null', `${NOW}`, `${NOW - 1}`],
      nbf: ['"0"', `${NOW + 60}`],
      iat: ['"1"', 'null', '{}'],
      sub: ['{"a":1}', '""', '7'],
      aud: ['{"0":"x"}', '["x"]', '[]', '"demo"', `"${randomUUID()}"`],
      client_id: ['7', '"x"', `"${randomUUID()}"`],
      ...{ jti: ['7'], family: ['["x"]'], sid: ['7'], token_use: ['"admin"', '"__proto__"', 'null'] },
    };

    it.each(Object.entries(payloads))(
      '7.6-02 D3-01 D3-24: is rejected, though signed, when its %s is %j',
      async (claim, values) => {
        for (const token_use of uses) {
          const good = JSON.stringify({ ...apiClaims(p, { token_use }), [claim]: '§' });
          for (const value of values)
            await refused(
              signedText(
                p,
                good.replace('"§"', () => value),
              ),
            );
        }
      },
    );

    it('7.6-02 D3-01: is rejected, though signed, when its claims are not a JSON object', async () => {
      for (const token_use of uses) {
        const good = JSON.stringify(apiClaims(p, { token_use }));
        const levels = `${'['.repeat(3_000)}${']'.repeat(3_000)}`;
        for (const text of [`[${good}]`, JSON.stringify(good), '7', '', 'null', `${good}${good}`, levels]) {
          await refused(signedText(p, text));
        }
        for (const text of [good.slice(0, -1), `${good}\0`, good.replace(/}$/, ',"exp":1}')]) {
          await refused(signedText(p, text));
        }
      }
    });
  },
);

const REFUSED = /^Bearer error="invalid_token", error_description="the token [a-z :,]+"$/;

async function expectUnauthorized(token: string): Promise<void> {
  const answer = await list(token);
  expect([answer.status, answer.text]).toEqual([401, envelope('unauthorized')]);
  expect(answer.headers.get('www-authenticate')).toMatch(REFUSED);
}

describe('a protected endpoint', () => {
  it('5.1-01: accepts a valid token, whatever the case of its scheme', async () => {
    const token = await p.clientToken();
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
      const answer = await p.call('GET', '/v1/accounts', { headers: { authorization: `${scheme} ${token}` } });
      expect(answer.status).toBe(200);
    }
  });

  it('D3-01: accepts a token that another program signed with the same secret, and an aud in any case', async () => {
    const changes = { exp: NOW + 1, nbf: NOW, client_id: undefined, aud: p.demo.node_id.toUpperCase() };
    expect(await statusOf(signed(p, apiClaims(p, changes)))).toBe(200);
    const key = Buffer.from(p.service.context.secrets.jwt.user.current, 'utf8');
    expect(await statusOf(await new SignJWT(apiClaims(p)).setProtectedHeader({ alg: 'HS256' }).sign(key))).toBe(200);
  });

  it.each([8.64e12, 8.64e12 + 1, 1e308])(
    'D3-01 DG-07: accepts an exp of %d, and reports it as the last date that other times may have',
    async (exp) => {
      const token = signed(p, apiClaims(p, { exp }));
      const answer = await p.call('POST', '/graphql', { token, json: { query: '{ me { expiresAt } }' } });
      expect(answer.json).toEqual({ data: { me: { expiresAt: '9999-12-31T23:59:59.999Z' } } });
    },
  );

  it('D3-25: rejects another encoding of a valid signature before and after the token was used', async () => {
    const token = signed(p, apiClaims(p));
    await expectUnauthorized(`${token}=`);
    expect(await statusOf(token)).toBe(200);
    await expectUnauthorized(`${token}=`);
    await expectUnauthorized(token.replace(/\.([^.]+)$/, '.=$1'));
  });
});

describe('an oversized token', () => {
  it.each([20_000, 100 * 1024, 150 * 1024])(
    '7.6-02: a token of %i bytes is a 401, whatever its content',
    async (bytes) => {
      const long = signed(p, apiClaims(p, { scope: 'x'.repeat(Math.floor(bytes * 0.75)) }));
      for (const token of [long, 'a'.repeat(bytes), '.'.repeat(bytes), `${'a.'.repeat(bytes / 2)}a`]) {
        const answer = await list(token);
        expect([answer.status, answer.text]).toEqual([401, envelope('unauthorized')]);
      }
    },
  );

  it('7.6-02: beyond the header limit is a 400, and the gateway keeps serving', async () => {
    const socket = openSocket(p.url);
    socket.write(`GET /v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'a'.repeat(200 * 1024)}\r\n\r\n`);
    const answer = await readAnswer(socket);
    expect([answer.status, JSON.parse(answer.body).message]).toEqual([400, 'invalid_request']);
    expect(await statusOf(pair.access_token)).toBe(200);
  });
});

it('D2-17: a legacy token that names a client is subject to the guards of that client', async () => {
  const { client_id } = await addClient(p, { allowed_ips: ['198.51.100.7'] });
  const claims = { sub: 'x', aud: p.demo.node_id, scope: 'accounts:read', client_id };
  const answer = await list(signed(p, claims, { secret: secretOf('legacy') }));
  expect([answer.status, answer.text]).toEqual([403, envelope('ip_not_allowed')]);
});

it('D3-02: an access token cannot be used as a refresh token, and a refresh token cannot be used as an access token', async () => {
  const [access, refreshed] = [await refresh(pair.access_token), await refresh(pair.refresh_token)];
  expect([access.status, refreshed.status]).toEqual([401, 200]);
  const answer = await list(pair.refresh_token);
  expect([answer.status, answer.text]).toEqual([401, envelope('unauthorized')]);
});
