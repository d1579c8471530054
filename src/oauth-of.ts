import type { Router } from 'express';
import type { Context } from './context.ts';
import { clientCredentialsGrant } from './oauth/grants/client-credentials.ts';
import { passwordGrant } from './oauth/grants/password.ts';
import { refreshTokenGrant } from './oauth/grants/refresh-token.ts';
import { managementSteps } from './oauth/management-endpoints.ts';
import { RefreshTokens } from './oauth/refresh-tokens.ts';
import { Revocations } from './oauth/revocations.ts';
import { SpentTokens } from './oauth/spent-tokens.ts';
import { tokenRouter } from './oauth/token.rest.ts';
import { tokenSteps } from './oauth/token-endpoint.ts';
import { tokenManagementRouter } from './oauth/token-management.rest.ts';
import { TokenManagement } from './oauth/token-management.ts';

/** The token endpoint and its siblings over the parts of this instance. */
export function oauthRouters(context: Context): Router[] {
  const { supervisors, passwords, locks, sessions, changes, directory, guards, throttle } = context;
  const { verifier, judge, issuer, publicUrl, database, log, nowMs } = context;
  const { db } = database;
  const spent = new SpentTokens({ db, nowMs });
  const revocations = new Revocations({ db, changes, sessions, nowMs });
  const refreshTokens = new RefreshTokens({ verifier, directory, supervisors, sessions, spent, nowMs });
  const grants = [
    clientCredentialsGrant(issuer),
    passwordGrant({ supervisors, passwords, locks, sessions, issuer }),
    refreshTokenGrant({ refreshTokens, spent, revocations, sessions, issuer }),
  ];
  const tokens = new TokenManagement({ verifier, judge, directory, supervisors, refreshTokens, revocations, nowMs });
  const steps = managementSteps({ directory, throttle, guards });
  return [
    tokenRouter(tokenSteps({ directory, throttle, guards, grants }), directory, log),
    tokenManagementRouter({ steps, tokens, directory, issuer: () => publicUrl.value, log }),
  ];
}
