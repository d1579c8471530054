import { type GatewayOptions, REQUESTS_PER_SECOND } from './peer.ts';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters';
const CLAIMS = 'claims';
const BUCKET = { max_tokens: REQUESTS_PER_SECOND, tokens_per_fill: REQUESTS_PER_SECOND, fill_interval: '1s' };
const ALWAYS = { default_value: { numerator: 100, denominator: 'HUNDRED' } };

/** Envoy: the token judged by its filter jwt_authn, and each client's requests of the second counted in the process. */
export function envoyConfig({ port, upstream, signingSecret }: GatewayOptions): string {
  const { hostname, port: upstreamPort } = new URL(upstream);
  const manager = {
    '@type': `${FILTERS}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'gateway',
    use_remote_address: true,
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: routes() }] },
    http_filters: [
      { name: 'envoy.filters.http.jwt_authn', typed_config: authentication(signingSecret) },
      { name: 'envoy.filters.http.local_ratelimit', typed_config: limits() },
      { name: 'envoy.filters.http.router', typed_config: { '@type': `${FILTERS}.http.router.v3.Router` } },
    ],
  };
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager };
  const listener = { address: addressOf('127.0.0.1', port), filter_chains: [{ filters: [filter] }] };
  const endpoint = { endpoint: { address: addressOf(hostname, Number(upstreamPort)) } };
  const cluster = {
    name: 'accounts',
    type: 'STATIC',
    load_assignment: { cluster_name: 'accounts', endpoints: [{ lb_endpoints: [endpoint] }] },
  };
  return JSON.stringify({ static_resources: { listeners: [listener], clusters: [cluster] } }, null, 2);
}

function routes(): object[] {
  return [
    { match: { path: '/health' }, direct_response: { status: 200 } },
    { match: { prefix: '/' }, route: { cluster: 'accounts' } },
  ];
}

function authentication(signingSecret: string): object {
  const key = { kty: 'oct', alg: 'HS256', k: Buffer.from(signingSecret, 'utf8').toString('base64url') };
  const provider = {
    local_jwks: { inline_string: JSON.stringify({ keys: [key] }) },
    forward: true,
    payload_in_metadata: CLAIMS,
  };
  return {
    '@type': `${FILTERS}.http.jwt_authn.v3.JwtAuthentication`,
    providers: { user: provider },
    rules: [{ match: { prefix: '/v1' }, requires: { provider_name: 'user' } }],
  };
}

function limits(): object {
  const client = {
    descriptor_key: 'client_id',
    metadata_key: { key: 'envoy.filters.http.jwt_authn', path: [{ key: CLAIMS }, { key: 'client_id' }] },
  };
  return {
    '@type': `${FILTERS}.http.local_ratelimit.v3.LocalRateLimit`,
    stat_prefix: 'clients',
    token_bucket: BUCKET,
    always_consume_default_token_bucket: false,
    filter_enabled: ALWAYS,
    filter_enforced: ALWAYS,
    rate_limits: [{ actions: [{ metadata: client }] }],
    // An entry without a value stands for every client, each with a bucket of its own.
    descriptors: [{ entries: [{ key: 'client_id' }], token_bucket: BUCKET }],
  };
}

function addressOf(address: string, port: number): object {
  return { socket_address: { address, port_value: port } };
}
