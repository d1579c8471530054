import { ConfigError } from '../../platform/config/config.ts';
import { type Endpoint, endpointOf, type GatewayConfig, remoteService } from './gateway-config.ts';

const PATH = '/v1/discovers/**';
/** The name of the upstream; no service in `gateway.yaml` can have it, so that no caller can select it. */
const UPSTREAM = '/v1/discovers';

/**
 * Adds the endpoint `/v1/discovers/**`, for discover tokens, which is forwarded to the service at `url`; returns the
 * table unchanged without a URL.
 * @throws ConfigError when `gateway.yaml` has registered the path as well.
 */
export function withDiscovers(config: GatewayConfig, url: string | undefined): GatewayConfig {
  if (url === undefined) return config;
  if (config.endpoints.some(({ path }) => path === PATH)) {
    throw new ConfigError([`DISCOVERS_UPSTREAM_URL: gateway.yaml has ${PATH} already; remove one of the two`]);
  }
  const endpoint: Endpoint = {
    ...endpointOf({
      methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
      path: PATH,
      services: Object.hasOwn(config.services, 'integration') ? ['integration'] : [],
      tokens: ['discover'],
    }),
    upstream: UPSTREAM,
  };
  return {
    ...config,
    endpoints: [...config.endpoints, endpoint],
    discovers: { name: UPSTREAM, service: remoteService(url) },
  };
}
