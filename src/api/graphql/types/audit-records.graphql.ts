import type { AuditFilter } from '../../../audit/audit-pages.service.ts';
import { textInput } from '../../../lib/input.ts';
import { pgFromInstant } from '../../../lib/instants.ts';
import { type Builder, connectionOf, implement, needs } from '../kit/builder.ts';
import { withoutNulls } from '../kit/camel-input.ts';
import { connectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the type of audit records and the query for them. */
export function addAuditRecords(builder: Builder, refs: TypeRefs): void {
  implement(
    refs.auditRecord,
    'A request and its response, or one operation of a GraphQL batch or socket. Secrets are masked as `***`.',
    {
      id: ['ID', 'A UUID.'],
      at: ['DateTime', 'When the request was received.'],
      correlation_id: [
        'String',
        'The `X-Correlation-ID` of the response; if it contained a token, `jwt:` and its hash.',
      ],
      method: ['String', 'The method; `WS` for an operation on a socket.'],
      path: ['String', 'The path, without the query.'],
      query: ['String?', 'The query of the URL, without its `?`; null where there was none.'],
      status_code: ['Int', 'The HTTP status of the response; 499 if the caller left before it.'],
      headers: [
        'JSON',
        'The headers of the request; under `:reason` why it was refused, where its response does not say it.',
      ],
      remote_address: ['String', 'The address at the other end of the connection: a proxy, where there is one.'],
      real_ip: ['String', "The client's address, behind trusted proxies."],
      request_body: ['String?', 'The request body, up to 64 KiB; null if it was not read, not kept or empty.'],
      response_body: ['String?', 'The response body, up to 64 KiB; null if it was not kept or empty.'],
      subject: ['String?', 'The `sub` of the token: a supervisor or a client; null without a token.'],
      client_id: ['ID?', 'The client, where one is known.'],
      operation: [
        'String?',
        'The path pattern of the endpoint, or the root fields of a GraphQL operation, separated by commas; null for an unknown path.',
      ],
      is_api: ['Boolean', "Whether the request had a client's own token rather than one of a login."],
    },
  );
  builder.objectFields(refs.auditRecord, (t) => ({
    elapsed: t.float({
      description: 'Milliseconds until the response was complete.',
      resolve: (row) => Number(row.elapsed),
    }),
  }));
  const filter = auditFilter(builder);
  const connection = connectionOf(
    builder,
    refs.auditRecord,
    'A page of audit records.',
    'An audit record and its cursor.',
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
