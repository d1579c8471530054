import type { AuditFilter } from '../../../audit/audit-pages.service.ts';
import { textInput } from '../../../lib/input.ts';
import { pgFromInstant } from '../../../lib/instants.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { withoutNulls } from '../kit/camel-input.ts';
import { connectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the type of audit records and the query for them. */
export function addAuditRecords(builder: Builder, refs: TypeRefs): void {
  refs.auditRecord.implement({
    description:
      'A request and its response, or one operation of a GraphQL batch or socket. Secrets are masked as `***`.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID.' }),
      at: t.expose('at', { type: 'DateTime', description: 'When the request was received.' }),
      correlationId: t.exposeString('correlation_id', {
        description: 'The `X-Correlation-ID` of the response; if it contained a token, `jwt:` and its hash.',
      }),
      method: t.exposeString('method', { description: 'The method; `WS` for an operation on a socket.' }),
      path: t.exposeString('path', { description: 'The path, without the query.' }),
      query: t.exposeString('query', {
        nullable: true,
        description: 'The query of the URL, without its `?`; null where there was none.',
      }),
      statusCode: t.exposeInt('status_code', {
        description: 'The HTTP status of the response; 499 if the caller left before it.',
      }),
      elapsed: t.float({
        description: 'Milliseconds until the response was complete.',
        resolve: (row) => Number(row.elapsed),
      }),
      headers: t.expose('headers', {
        type: 'JSON',
        description:
          'The headers of the request; under `:reason` why it was refused, where its response does not say it.',
      }),
      remoteAddress: t.exposeString('remote_address', {
        description: 'The address at the other end of the connection: a proxy, where there is one.',
      }),
      realIp: t.exposeString('real_ip', { description: "The client's address, behind trusted proxies." }),
      requestBody: t.exposeString('request_body', {
        nullable: true,
        description: 'The request body, up to 64 KiB; null if it was not read, not kept or empty.',
      }),
      responseBody: t.exposeString('response_body', {
        nullable: true,
        description: 'The response body, up to 64 KiB; null if it was not kept or empty.',
      }),
      subject: t.exposeString('subject', {
        nullable: true,
        description: 'The `sub` of the token: a supervisor or a client; null without a token.',
      }),
      clientId: t.exposeID('client_id', { nullable: true, description: 'The client, where one is known.' }),
      operation: t.exposeString('operation', {
        nullable: true,
        description:
          'The path pattern of the endpoint, or the root fields of a GraphQL operation, separated by commas; null for an unknown path.',
      }),
      isApi: t.exposeBoolean('is_api', {
        description: "Whether the request had a client's own token rather than one of a login.",
      }),
    }),
  });
  const filter = auditFilter(builder);
  const connection = builder.connectionObject(
    { type: refs.auditRecord, name: 'AuditRecordConnection', description: 'A page of audit records.' },
    { name: 'AuditRecordEdge', description: 'An audit record and its cursor.' },
  );
  builder.queryFields((t) => ({
    auditRecords: t.field({
      type: connection,
      ...needs('audit:read', 'The requests of the node and their responses, newest first.'),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the records; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver(
        'auditRecords',
        ({ auditPages }) => auditPages,
        ({ filter: given }) => auditFilterOf(given),
      ),
    }),
  }));
}

function auditFilter(builder: Builder) {
  const exactly = { validate: { schema: textInput() } };
  return builder.inputType('AuditFilter', {
    description: 'Filters audit records; every given member must match.',
    fields: (t) => ({
      correlationId: t.string({ description: 'The exact correlation id.', ...exactly }),
      method: t.string({ description: 'The exact method, such as `POST`, or `WS`.', ...exactly }),
      path: t.string({ description: 'The exact path.', ...exactly }),
      statusCode: t.int({ description: 'The exact HTTP status, such as 404.' }),
      since: t.field({ type: 'DateTime', description: 'Received at this time or later.' }),
      until: t.field({ type: 'DateTime', description: 'Received before this time.' }),
    }),
  });
}

function auditFilterOf(given: ReturnType<typeof auditFilter>['$inferInput'] | null | undefined): AuditFilter {
  const { since, until, ...same } = withoutNulls(given);
  return { ...same, since: since && pgFromInstant(since), until: until && pgFromInstant(until) };
}
