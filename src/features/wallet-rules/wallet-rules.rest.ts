import { z } from 'zod';
import type { oas31 } from 'zod-openapi';
import { limitedHeadersOf, parameterOf, refTo, responseOf } from '../../api/openapi/operation.ts';
import { respondIdempotently, route, sendEmpty } from '../../api/rest/route.ts';
import { callerOf, jsonBody, readBody } from '../../gateway/exchange/exchange.ts';
import type { IdempotentResponses } from '../../idempotency/idempotent-responses.ts';
import { IDS } from '../../lib/example-ids.ts';
import { uuidInput } from '../../lib/input.ts';
import { invalidRequest, parseOrReject } from '../../platform/errors.ts';
import { MAX_INT32, walletRuleInput } from './wallet-rule.input.ts';
import type { WalletRules } from './wallet-rules.service.ts';

const AUTO_TRANSFER = {
  name: 'Top up the hot wallet',
  type: 'auto_transfer',
  network_id: IDS.network_id,
  network_currency_id: IDS.network_currency_id,
  priority: 10,
  auto_transfer_rule: {
    type: 'auto_with_approve',
    rule_logic: { field: 'target.balance', op: 'lt', value: 100, network_currency_id: IDS.network_currency_id },
    amount: 250.5,
    target_wallet_id: IDS.target_wallet_id,
  },
  sign_and_approve_rule: { min_priority: 1, max_priority: 50, min_user_count: 2 },
};

const TRANSFER_LIMIT = {
  name: 'At most 1000 a day',
  type: 'permissionless_transfer_limit',
  network_id: IDS.network_id,
  network_currency_id: IDS.network_currency_id,
  permissionless_transfer_limit_rule: { max_amount: 1000, time_period: 'day', time_period_value: 1 },
};

/** A rule whose conditions are combined by `or` and `not`. */
const GROUPED = {
  ...AUTO_TRANSFER,
  auto_transfer_rule: {
    ...AUTO_TRANSFER.auto_transfer_rule,
    rule_logic: {
      or: [
        AUTO_TRANSFER.auto_transfer_rule.rule_logic,
        { not: { field: 'source.balance', op: '>=', value: 1000, network_currency_id: IDS.network_currency_id } },
      ],
    },
  },
};

interface WalletRuleServices {
  walletRules: WalletRules;
  idempotentResponses: IdempotentResponses;
  publicUrl: { readonly path: string };
}

const ENTITY_TAG = /[\t ]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[\t ]*)?(?:,|$)/y;
const VERSION = /^[1-9]\d{0,9}$/;

const tag = 'Wallets';
const walletPath = z.object({ wallet_id: uuidInput().meta({ example: IDS.wallet_id }) });
const rulePath = walletPath.extend({ id: uuidInput() });

const requestBody: oas31.RequestBodyObject = {
  required: true,
  description: "At most 1 MiB. The object for the rule's type is required. A null member counts as absent.",
  content: {
    'application/json': {
      schema: refTo('WalletRule'),
      examples: {
        auto_transfer: { value: AUTO_TRANSFER },
        permissionless_transfer_limit: { value: TRANSFER_LIMIT },
        conditions_in_groups: { value: GROUPED },
      },
    },
  },
};

/** Creates a rule of a wallet (docs/contract.md, 4.2-01). */
const createWalletRule = route({
  method: 'POST',
  path: '/v1/wallets/{wallet_id}/rules',
  operation: {
    operationId: 'createWalletRule',
    tag,
    summary: 'Create a wallet rule',
    pathParameters: walletPath,
    parameters: [parameterOf('Idempotency-Key')],
    requestBody,
    responses: {
      201: { description: 'Created; no body.', headers: limitedHeadersOf('Location', 'ETag') },
      404: responseOf('NotFound'),
      409: responseOf('Conflict'),
      413: responseOf('PayloadTooLarge'),
    },
  },
  handlers: ({ walletRules, idempotentResponses: answers, publicUrl }: WalletRuleServices) => [
    readBody,
    (req, res) => {
      const { wallet_id: walletId } = parseOrReject(walletPath, req.params);
      return respondIdempotently(req, res, {
        answers,
        parse: (body) => parseOrReject(walletRuleInput, body),
        work: async (content) => {
          const { id, version } = await walletRules.create(callerOf(req), walletId, content);
          const Location = `${publicUrl.path}/v1/wallets/${walletId}/rules/${id}`;
          return { status: 201, headers: { Location, ETag: entityTag(version) }, body: null };
        },
      });
    },
  ],
});

/** Replaces a rule in full, if `If-Match` matches its version (docs/contract.md, 4.3-01). */
const replaceWalletRule = route({
  method: 'PUT',
  path: '/v1/wallets/{wallet_id}/rules/{id}',
  operation: {
    operationId: 'replaceWalletRule',
    tag,
    summary: 'Replace a wallet rule in full',
    pathParameters: rulePath,
    parameters: [parameterOf('If-Match')],
    requestBody,
    responses: {
      200: { description: 'Replaced; no body. The version is raised by one.', headers: limitedHeadersOf('ETag') },
      404: responseOf('NotFound'),
      412: responseOf('PreconditionFailed'),
      413: responseOf('PayloadTooLarge'),
    },
  },
  handlers: ({ walletRules }: WalletRuleServices) => [
    readBody,
    async (req, res) => {
      const { wallet_id: walletId, id } = parseOrReject(rulePath, req.params);
      const versions = versionsOf(req.headers['if-match']);
      const content = parseOrReject(walletRuleInput, await jsonBody(req));
      const { version } = await walletRules.replace(callerOf(req), { walletId, id }, content, versions);
      res.setHeader('ETag', entityTag(version));
      sendEmpty(res, 200);
    },
  ],
});

/** The routes for the rules of wallets. */
export const walletRuleRoutes = [createWalletRule, replaceWalletRule];

/**
 * Returns the versions that an `If-Match` header matches (RFC 9110, section 13.1.1); undefined if any version does, as
 * without the header. Weak tags and tags that are not a version match nothing.
 * @throws Refusal 400 for a value that is neither `*` nor a list of entity tags.
 */
export function versionsOf(header: string | undefined): number[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const versions: number[] = [];
  ENTITY_TAG.lastIndex = 0;
  while (ENTITY_TAG.lastIndex < header.length) {
    const match = ENTITY_TAG.exec(header);
    if (!match)
      throw invalidRequest([{ path: 'If-Match', message: 'must be * or a list of entity tags, such as "1"' }]);
    const [, weak, tag = ''] = match;
    if (weak === undefined && VERSION.test(tag) && Number(tag) <= MAX_INT32) versions.push(Number(tag));
  }
  return [...new Set(versions)];
}

/** Returns a version as an entity tag (RFC 9110, section 8.8.3). */
function entityTag(version: number): string {
  return `"${version}"`;
}
