import type { GraphQLResolveInfo } from 'graphql';
import { z } from 'zod';
import { NAMING_REASONS, type SupervisorRow } from '../../access/supervisors/supervisors.service.ts';
import { type Builder, connectionOf, enumOf, implement, needs } from '../../api/graphql/kit/builder.ts';
import {
  callerOf,
  connectionResolver,
  errorsOf,
  type GraphqlContext,
  loaderOfRows,
  orMember,
  PreconditionError,
  rowResolver,
  withoutNulls,
} from '../../api/graphql/kit/resolvers.ts';
import type { AuditFilter, AuditRecordRow } from '../../audit/audit-filter.ts';
import type { AuditExportRow } from '../../audit/export/export-targets.ts';
import { boundedTextInput, isUuid, textInput, wholeNumberInput } from '../../lib/input.ts';
import { pgFromInstant } from '../../lib/instants.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    AuditExport: AuditExportRow;
    AuditRecord: AuditRecordRow;
  }
}

/**
 * Returns whom the record of a refused sign-in says it named; null for another record. `named` is the id of a supervisor, or
 * the hash of another name.
 */
function attemptedIn(
  { method, operation, headers: { ':reason': reason }, subject, client_id }: AuditRecordRow,
  { services: { auditPages } }: GraphqlContext,
) {
  if (method !== 'POST' || !reason || !auditPages.signIns.includes(operation)) return null;
  const named = NAMING_REASONS.some((naming) => naming === reason) ? subject : null;
  return { client_id, supervisor_id: named !== null && isUuid(named) ? named : null, named };
}

/** Adds the types of audit records and their exports, with the queries for them. */
export function addAuditRecords(builder: Builder): void {
  const supervisors = loaderOfRows<SupervisorRow, null>(
    ({ supervisorPages }) => supervisorPages,
    () => null,
  );
  const attempted = implement(
    builder.objectRef<NonNullable<ReturnType<typeof attemptedIn>>>('AttemptedSignIn'),
    'The client and the supervisor that a refused sign-in named. That proves an attempt at their names, not who made it.',
    {
      client_id: ['ID?', 'The client.'],
      supervisor_id: ['ID?', 'The supervisor; null if none had the username, or none was looked for.'],
    },
    (t) => ({
      username: t.string({
        nullable: true,
        description:
          'The username that the supervisor has, or `unknown:` and a hash of a name that none had; null if none was looked for.',
        resolve: async ({ supervisor_id: id, named }, _args, context) =>
          id === null ? named : ((await supervisors(context).load(id))?.username ?? null),
      }),
    }),
  );
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
      headers: [
        'JSON',
        'The headers of the request. `:reason` says why the request was refused, and `:locked-until` until when wrong passwords have locked the username.',
      ],
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
    (t) => ({
      elapsed: t.float({
        description: 'Milliseconds until the response was complete.',
        resolve: (row) => Number(row.elapsed),
      }),
      attempted: t.field({
        type: attempted,
        nullable: true,
        description:
          'Whom a refused sign-in named: a request for tokens, or a sign-in to the console. Null for other records.',
        resolve: (row, _args, context) => attemptedIn(row, context),
      }),
    }),
  );
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
        ({ filter: filterArgument }, info, context) => auditFilterOf(filterArgument, info, context),
      ),
    }),
  }));
  addAuditExports(builder, filter);
}

/** Adds the type of exports, the mutation that asks for one, and the queries for them. */
function addAuditExports(builder: Builder, filter: ReturnType<typeof auditFilter>): void {
  const status = enumOf<AuditExportRow['status']>(builder, 'AuditExportStatus', 'The status of an export.', {
    waiting: 'Exports of other tenants come first.',
    running: 'Its records are being written, or have been and are being verified.',
    ready: 'It can be downloaded.',
    failed: 'It has no files; `reason` says why.',
    expired: 'Its files were deleted after 24 hours, or replaced by a later export.',
  });
  implement(
    builder.objectRef<AuditExportRow>('AuditExport'),
    'An export of audit records: an archive that others can verify without this service.',
    {
      id: ['ID', 'A UUID.'],
      asked: ['JSON', 'The members of the filter that were asked for.'],
      records: ['Int', 'The number of records that are written so far.'],
      total: ['Int?', 'The number of records that match; null until it is known.'],
      bytes: ['Int', 'The size of its files so far, uncompressed: 1 GiB at most.'],
      problems: ['Int?', 'The number of findings of `portcullis audit verify` in the period; null until it has ended.'],
      reason: ['String?', 'Why it has failed; otherwise null.'],
      requested_by: ['String', 'The `sub` of the token that asked for it.'],
      created_at: ['DateTime', 'When it was asked for.'],
      finished_at: ['DateTime?', 'When it ended; null until then.'],
      expires_at: ['DateTime?', 'When its files are deleted; null if it has never had any.'],
    },
    (t) => ({
      status: t.field({
        type: status,
        description: 'Its status.',
        resolve: (row, _args, { services }) => services.auditExports.statusOf(row),
      }),
      downloadPath: t.string({
        nullable: true,
        description:
          'The path of the archive (ZIP), for a GET with a token that has audit:read. It works once; then this is another path. Null unless READY.',
        resolve: (row, _args, { services }) => services.auditExports.downloadPathOf(row),
      }),
    }),
  );
  const connection = connectionOf(builder, 'AuditExport', 'A page of exports.', 'An export and its cursor.');
  builder.mutationField('requestAuditExport', (t) =>
    t.field({
      type: 'AuditExport',
      ...needs('audit:read', 'Exports audit records in the background. A tenant has one export at a time.'),
      errors: errorsOf(
        'The export, which is waiting; or PreconditionError: another one is waiting or running; ValidationError: the filter is invalid; ForbiddenError: the caller lacks audit:read; NotFoundError: reserved for later versions.',
        PreconditionError,
      ),
      args: { filter: t.arg({ type: filter, required: true, description: 'Which records; empty: all.' }) },
      resolve: async (_root, { filter: filterArgument }, context, info) => {
        const { nodeId, subject: by } = callerOf(context);
        const conditions = await auditFilterOf(filterArgument, info, context);
        const asked = {
          ...withoutNulls(filterArgument),
          ...{ since: conditions.since, until: conditions.until },
          // The name may be a password that somebody has typed into the wrong field.
          attemptedUsername: conditions.attempted?.subjects,
        };
        return orMember(context.services.auditExports.request(nodeId, { asked, filter: conditions, by }));
      },
    }),
  );
  builder.queryFields((t) => ({
    auditExports: t.field({
      type: connection,
      ...needs('audit:read', "The tenant's exports of the last 30 days, newest first."),
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('auditExports', ({ auditExportPages }) => auditExportPages),
    }),
    auditExport: t.field({
      type: 'AuditExport',
      nullable: true,
      ...needs('audit:read', 'One export; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The export's UUID." }) },
      resolve: rowResolver(({ auditExportPages }, nodeId, id) => auditExportPages.find(nodeId, id)),
    }),
  }));
}

function auditFilter(builder: Builder) {
  const exactly = { validate: { schema: textInput() } };
  return builder.inputType('AuditFilter', {
    description: 'Filters audit records; all given members must match.',
    fields: (t) => ({
      correlationId: t.string({ description: 'The exact correlation id.', ...exactly }),
      correlationIds: t.stringList({
        description:
          'Up to 100 correlation ids, of which a record has one: those of the versions of a rule, for example.',
        validate: { schema: z.array(textInput()).min(1).max(100) },
      }),
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
      attemptedUsername: t.string({
        description:
          'The username that a refused sign-in named, whether or not a supervisor has it; compared as sign-ins compare it. At most 1,024 characters.',
        // As many as count when usernames are compared.
        validate: { schema: boundedTextInput(1_024) },
      }),
      operation: t.string({
        description: 'The exact operation, or one of the root fields of a GraphQL operation.',
        ...exactly,
      }),
      clientId: t.id({
        description: 'The client id, whatever the subject: also of requests with a wrong secret of it.',
        ...exactly,
      }),
      changesOnly: t.boolean({
        description:
          'Whether to leave out what anybody read: GET and HEAD requests, and GraphQL operations other than mutations.',
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

async function auditFilterOf(
  filterArgument: ReturnType<typeof auditFilter>['$inferInput'] | null | undefined,
  { schema }: GraphQLResolveInfo,
  { services, principal }: GraphqlContext,
): Promise<AuditFilter> {
  const { since, until, hideReadsOf, changesOnly, attemptedUsername, ...otherFilters } = withoutNulls(filterArgument);
  return {
    ...otherFilters,
    ...((changesOnly || hideReadsOf !== undefined) && {
      hiddenReads: {
        subject: changesOnly ? undefined : hideReadsOf,
        mutations: Object.keys(schema.getMutationType()?.getFields() ?? {}),
      },
    }),
    ...(attemptedUsername !== undefined && {
      attempted: {
        subjects: await services.passwordCheck.subjectsOf(principal.nodeId, attemptedUsername),
        reasons: NAMING_REASONS,
      },
    }),
    since: since && pgFromInstant(since),
    until: until && pgFromInstant(until),
  };
}
