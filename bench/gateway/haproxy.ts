import { type GatewayOptions, REQUESTS_PER_SECOND } from './peer.ts';

/** HAProxy on one thread: the token judged as its manual does it, and each client's requests of the last second counted. */
export function haproxyConfig({ port, upstream, signingSecret }: GatewayOptions): string {
  return `
global
  nbthread 1

defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s

backend clients
  stick-table type string len 64 size 100k expire 10s store http_req_rate(1s)

frontend gateway
  bind 127.0.0.1:${port}
  http-request return status 200 if { path /health }
  http-request set-var(txn.bearer) http_auth_bearer
  http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
  http-request set-var(txn.client) var(txn.bearer),jwt_payload_query('$.client_id')
  http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date()
  http-request deny deny_status 401 unless { var(txn.alg) -m str HS256 }
  http-request deny deny_status 401 unless { var(txn.bearer),jwt_verify(txn.alg,"${signingSecret}") -m int 1 }
  http-request deny deny_status 401 unless { var(txn.exp),sub(txn.now) -m int gt 0 }
  http-request track-sc0 var(txn.client) table clients
  http-request deny deny_status 429 if { sc_http_req_rate(0,clients) gt ${REQUESTS_PER_SECOND} }
  option forwardfor
  default_backend accounts

backend accounts
  http-reuse always
  server upstream ${new URL(upstream).host}
`;
}
