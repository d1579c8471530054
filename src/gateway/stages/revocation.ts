import { TOKEN_REVOKED, unauthorized } from '../../errors/app-error.ts';
import type { Sessions } from '../../oauth/sessions.ts';
import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';

/** A login token needs its entry in the revocation cache; API and forgot-password tokens skip the check. */
export function revocationStage(sessions: Sessions): Stage {
  return function revocation(exchange: Exchange): void | Promise<void> {
    if (exchange.principal?.tokenUse !== 'login') return;
    const live = sessions.isLive(exchange.principal);
    if (typeof live === 'boolean') {
      if (!live) throw unauthorized(TOKEN_REVOKED);
      return;
    }
    return live.then((stillLive) => {
      if (!stillLive) throw unauthorized(TOKEN_REVOKED);
    });
  };
}
