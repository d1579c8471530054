import { ConfigError } from '../../platform/config/config.ts';
import { type Endpoint, endpointOf, type GatewayConfig, remoteService } from './gateway-config.ts';

const PATH = '/v1/discovers/**';
/** A name that no service in `gateway.yaml` can have, so that nobody can name it. */
const UPSTREAM = '/v1/discovers';

/**
 * Registers `/v1/discovers/**` for discover tokens, in front of another service; without a URL the path stays
 * unregistered.
 * @throws ConfigError when `gateway.yaml` has registered it as well.
 */
export function withDiscovers(config: GatewayConfig, url: string | undefined): GatewayConfig {
  if (url === undefined) return config;
  if (config.endpoints.some(({ path }) => path === PATH)) {
    throw new ConfigError([`DISCOVERS_UPSTREAM_URL: gateway.yaml has ${PATH} already; have one of them`]);
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
