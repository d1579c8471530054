import type { AccessDirectory } from '../oauth/access-directory.ts';
import type { Sessions } from '../oauth/sessions.ts';
import type { TokenVerifier } from '../oauth/token-verifier.ts';
import type { EndpointTable } from './endpoint-table.ts';
import type { Exchange } from './exchange.ts';
import type { Services } from './services.ts';
import type { Stage } from './stage.ts';
import { captureStage } from './stages/capture.ts';
import { claimsStage } from './stages/claims.ts';
import { clockStage } from './stages/clock.ts';
import { correlation } from './stages/correlation.ts';
import { endpointStage } from './stages/endpoint.ts';
import { permission } from './stages/permission.ts';
import { type LocalServices, proxyStage, type RemoteServices } from './stages/proxy.ts';
import { revocationStage } from './stages/revocation.ts';
import { signatureStage } from './stages/signature.ts';
import { targetStage } from './stages/target.ts';
import { upstreamStage } from './stages/upstream.ts';
import { visibility } from './stages/visibility.ts';

export interface ChainParts {
  table: EndpointTable;
  services: Services;
  tokens: TokenVerifier;
  directory: AccessDirectory;
  sessions: Sessions;
  clientGuards: (exchange: Exchange) => void | Promise<void>;
  local: LocalServices;
  remote: RemoteServices;
  onEnd(exchange: Exchange, aborted: boolean, kept: () => void): void;
  nowMs(): number;
}

/** The gateway chain, in the order of specification section 1; permissions follow revocation. */
export function gatewayChain(parts: ChainParts): readonly Stage[] {
  return [
    clockStage(parts.nowMs),
    correlation,
    captureStage(parts.onEnd),
    targetStage(parts.services),
    endpointStage(parts.table, parts.services),
    visibility,
    signatureStage(parts.tokens),
    claimsStage(parts.directory, parts.nowMs),
    revocationStage(parts.sessions),
    permission,
    upstreamStage(parts.services),
    proxyStage(parts),
  ];
}
