import type { GraphQLResolveInfo } from 'graphql';
import { type Builder, connectionOf, implement, needs } from '../../api/graphql/kit/builder.ts';
import { withoutNulls } from '../../api/graphql/kit/camel-input.ts';
import { connectionResolver } from '../../api/graphql/kit/pages.ts';
import type { AuditFilter, AuditRecordRow } from '../../audit/audit-filter.ts';
import { textInput, wholeNumberInput } from '../../lib/input.ts';
import { pgFromInstant } from '../../lib/instants.ts';
import type { AuditPages } from './audit-records.service.ts';

declare module '../../api/shared/services.ts' {
  interface FeatureServices {
    auditPages: AuditPages;
  }
}

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    AuditRecord: AuditRecordRow;
  }
}

/** Adds the type of audit records and the query for them. */
export function addAuditRecords(builder: Builder): void {
  implement(
    builder.objectRef<AuditRecordRow>('AuditRecord'),
    'A request and its response, or one operation of a GraphQL batch or WebSocket. Secrets are masked as `***`.',
    {
      id: ['ID', 'A UUID.'],
      at: ['DateTime', 'When the request was received.'],
      correlation_id: [
        'String',
        'The `X-Correlation-ID` of the response. If it contained a token, this is `jwt:` and its hash.',
      ],
      method: ['String', 'The HTTP method; `WS` for an operation on a WebSocket, `CLI` for a command of an operator.'],
      path: ['String', 'The path, without the query.'],
      query: ['String?', 'The query string of the URL, without the `?`; null if there was none.'],
      status_code: ['Int', 'The HTTP status of the response; 499 if the caller disconnected first.'],
      headers: ['JSON', 'The headers of the request. `:reason` says why the request was refused.'],
      remote_address: [
        'String',
        'The address of the peer: of the last proxy if there is one, otherwise of the client.',
      ],
      real_ip: ['String', "The client's address, behind trusted proxies."],
      request_body: ['String?', 'The request body, up to 64 KiB; null if it was empty, not read or not recorded.'],
      response_body: ['String?', 'The response body, up to 64 KiB; null if it was empty or not recorded.'],
      subject: [
        'String?',
        'The `sub` of the token: a supervisor or a client. Without a token, the supervisor whom a sign-in named, even in vain, or `unknown:` and a hash of a name that does not exist; otherwise null.',
      ],
      client_id: ['ID?', 'The client; null if it is unknown.'],
      operation: [
        'String?',
        'The path pattern of the endpoint, or the comma-separated root fields of a GraphQL operation; null for an unknown path.',
      ],
      is_api: ['Boolean', 'Whether the request used an API token of a client rather than a login token.'],
    },
  );
  builder.objectFields('AuditRecord', (t) => ({
    elapsed: t.float({
      description: 'Milliseconds until the response was complete.',
      resolve: (row) => Number(row.elapsed),
    }),
  }));
  const filter = auditFilter(builder);
  const connection = connectionOf(
    builder,
    'AuditRecord',
    'A page of audit records.',
    'An audit record and its cursor.',
  );
  builder.queryFields((t) => ({
    auditRecords: t.field({
      type: connection,
      ...needs('audit:read', "The tenant's requests and their responses, newest first."),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the records; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver(
        'auditRecords',
        ({ auditPages }) => auditPages,
        ({ filter: filterArgument }, info) => auditFilterOf(filterArgument, info),
      ),
    }),
  }));
}

function auditFilter(builder: Builder) {
  const exactly = { validate: { schema: textInput() } };
  return builder.inputType('AuditFilter', {
    description: 'Filters audit records; all given members must match.',
    fields: (t) => ({
      correlationId: t.string({ description: 'The exact correlation id.', ...exactly }),
      method: t.string({ description: 'The exact method, such as `POST`, or `WS`.', ...exactly }),
      path: t.string({ description: 'The exact path.', ...exactly }),
      pathPrefix: t.string({ description: 'The beginning of the path.', ...exactly }),
      statusCode: t.int({ description: 'The exact HTTP status, such as 404.' }),
      statusClass: t.int({
        description: 'The first digit of the HTTP status: 4 for 400 to 499.',
        validate: { schema: wholeNumberInput(1, 5) },
      }),
      subject: t.string({
        description: 'The exact subject: a supervisor, a client, or `unknown:` and the hash of a name.',
        ...exactly,
      }),
      operation: t.string({
        description: 'The exact operation, or one of the root fields of a GraphQL operation.',
        ...exactly,
      }),
      hideReadsOf: t.string({
        description:
          'Leave out what this subject read: GET and HEAD requests, and GraphQL operations other than mutations.',
        ...exactly,
      }),
      since: t.field({ type: 'DateTime', description: 'Received at this time or later.' }),
      until: t.field({ type: 'DateTime', description: 'Received before this time.' }),
    }),
  });
}

function auditFilterOf(
  filterArgument: ReturnType<typeof auditFilter>['$inferInput'] | null | undefined,
  { schema }: GraphQLResolveInfo,
): AuditFilter {
  const { since, until, hideReadsOf, ...otherFilters } = withoutNulls(filterArgument);
  const mutations = Object.keys(schema.getMutationType()?.getFields() ?? {});
  const hiddenReads = hideReadsOf === undefined ? undefined : { subject: hideReadsOf, mutations };
  return { ...otherFilters, hiddenReads, since: since && pgFromInstant(since), until: until && pgFromInstant(until) };
}
