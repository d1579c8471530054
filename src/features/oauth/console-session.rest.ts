import type { Request } from 'express';
import type { z } from 'zod';
import { LOGIN_LOCK } from '../../access/credentials/login-locks.ts';
import type { AccessDirectory } from '../../access/revocation/access-cache.ts';
import { CONSOLE_IDLE_SECONDS } from '../../access/tokens/token-issuer.ts';
import { type Route, route, sendEmpty } from '../../api/rest/route.ts';
import { showConsole } from '../../api/rest/system.rest.ts';
import type { Files } from '../../api/shared/served-files.ts';
import { exchangeOf, readBody } from '../../gateway/exchange/exchange.ts';
import { invalidRequest, notFound, parseOrReject, Refusal } from '../../platform/errors.ts';
import type { ConsoleSessions } from './console-sessions.service.ts';
import { beginAuthentication, MAX_BODY_BYTES, withClient } from './oauth.rest.ts';
import { oauthEnvelope } from './oauth-errors.rest.ts';
import type { Granted } from './token-endpoint.service.ts';
import { consoleSessionInput, consoleSignInInput } from './token-request.input.ts';

interface SessionServices {
  directory: AccessDirectory;
  consoleSessions: ConsoleSessions;
  /** Undefined where there is no console. */
  console: Files | undefined;
  publicUrl: Readonly<{ value: string; path: string }>;
}

/** The path of a session in the console. */
export const CONSOLE_SESSION = showConsole.path.replace('**', 'session');

/**
 * Refuses a request that another site may have caused (Fetch Metadata; the Origin field in browsers without it, and at
 * addresses without https).
 * @throws Refusal `forbidden`
 */
function requireSameOrigin({ headers }: Request, publicUrl: string): void {
  const { 'sec-fetch-site': site, origin = '', host } = headers;
  const url = URL.parse(origin);
  const isOwn = url !== null && (url.host === host || url.origin === URL.parse(publicUrl)?.origin);
  if (site === undefined ? !isOwn : site !== 'same-origin') throw new Refusal('forbidden', { reason: 'origin' });
}

/** Returns the name and the attributes of the cookie for the refresh token of a client's session. */
function cookieOf(clientId: string, { value, path }: SessionServices['publicUrl']): [name: string, attributes: string] {
  const [prefix, secure] = value.startsWith('https:') ? ['__Secure-', '; Secure'] : ['', ''];
  return [`${prefix}portcullis-${clientId}`, `Path=${path}${CONSOLE_SESSION}; HttpOnly; SameSite=Strict${secure}`];
}

/** Returns the values of the cookies with a name. */
function cookiesIn({ headers: { cookie = '' } }: Request, name: string): string[] {
  const pairs = cookie.split(/; */).filter((pair) => pair.startsWith(`${name}=`));
  return pairs.map((pair) => pair.slice(name.length + 1));
}

/**
 * Declares a route of the console's sessions, which only the console's own page may call. `work` returns the tokens: the
 * refresh token is sent in the cookie, all else in the body. Without tokens the cookie is deleted.
 */
function sessionRoute<Input extends { client_id: string }>(
  method: 'POST' | 'DELETE',
  path: string,
  schema: z.ZodType<Input>,
  work: (sessions: ConsoleSessions, input: Input, tokens: string[], realIp: string) => Promise<Granted | undefined>,
): Route<SessionServices> {
  return route({
    method,
    path,
    bodyLimit: MAX_BODY_BYTES,
    errorBody: oauthEnvelope,
    handlers: (services) => [
      (req, _res, next) => {
        if (!services.console) throw notFound('CONSOLE is off');
        requireSameOrigin(req, services.publicUrl.value);
        // The audit record would get the tenant of the client in HTTP Basic.
        if (/^basic\b/i.test(req.headers.authorization ?? ''))
          throw invalidRequest([
            { path: 'Authorization', message: 'must be left out: client_id in the body names the client' },
          ]);
        next();
      },
      beginAuthentication,
      readBody,
      async (req, res) => {
        const { body } = await withClient(
          services,
          req,
          ({ parameters, realIp }) => answer(parseOrReject(schema, parameters), realIp),
          false,
        );
        // Sent only now that the tenant is in the audit record.
        if (body) res.json(body);
        else sendEmpty(res, 204);

        // While a sign-in waits, it holds nothing of the body but its input.
        async function answer(input: Input, realIp: string): Promise<{ body?: object; subject?: string }> {
          const [name, attributes] = cookieOf(input.client_id, services.publicUrl);
          const setCookie = (value: string, seconds: number) =>
            res.setHeader('Set-Cookie', `${name}=${value}; Max-Age=${seconds}; ${attributes}`);
          if (method === 'DELETE') setCookie('', 0);
          const granted = await work(services.consoleSessions, input, cookiesIn(req, name), realIp);
          if (!granted) return {};
          const { refresh_token: token, ...body } = granted.response;
          setCookie(token, CONSOLE_IDLE_SECONDS);
          return { body, subject: granted.subject };
        }
      },
    ],
  });
}

/** Tells people who have not signed in yet the tenant that a console client belongs to, and what locks a username. */
const showTenant = route({
  method: 'GET',
  path: showConsole.path.replace('**', 'tenants/{client_id}'),
  handlers: ({ console, consoleSessions }: SessionServices) => [
    async (req, res) => {
      if (!console) throw notFound('CONSOLE is off');
      const { client_id: clientId } = parseOrReject(consoleSessionInput, req.params);
      res.json({
        tenant_name: await consoleSessions.tenantOf(clientId, exchangeOf(req).realIp),
        login_lock: LOGIN_LOCK,
      });
    },
  ],
});

/** The routes that begin, renew and end sessions of supervisors in the console (docs/contract.md, D3-40). */
export const consoleSessionRoutes = [
  showTenant,
  sessionRoute('POST', CONSOLE_SESSION, consoleSignInInput, (sessions, signIn, tokens, realIp) =>
    sessions.signIn(signIn, tokens, realIp),
  ),
  sessionRoute(
    'POST',
    `${CONSOLE_SESSION}/renew`,
    consoleSessionInput,
    (sessions, { client_id: clientId }, tokens, realIp) => sessions.renew(clientId, tokens, realIp),
  ),
  sessionRoute('DELETE', CONSOLE_SESSION, consoleSessionInput, (sessions, { client_id: clientId }, tokens, realIp) =>
    sessions.signOut(clientId, tokens, realIp),
  ),
];
