import { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import { principalOf } from '../gateway/exchange.ts';
import { answerOnce } from '../idempotency/idempotent.rest.ts';
import type { IdempotentAnswers } from '../idempotency/idempotent-answers.ts';
import { uuidInput } from '../lib/input.ts';
import { jsonBody, readBody } from '../rest/body.ts';
import { parsed } from '../rest/parsed.ts';
import { orRefuse } from '../rest/refusals.ts';
import { sendEmpty } from '../rest/send.ts';
import { entityTag, versionsOf } from './if-match.rules.ts';
import { walletRuleInput } from './wallet-rule.input.ts';
import type { WalletRules } from './wallet-rules.service.ts';

export const walletPath = z.object({ wallet_id: uuidInput() });
export const rulePath = z.object({ wallet_id: uuidInput(), id: uuidInput() });

/** POST /v1/wallets/{wallet_id}/rules and PUT …/rules/{id} (specification sections 4.2 and 4.3). */
export function walletRulesRouter(rules: WalletRules, answers: IdempotentAnswers): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.post('/v1/wallets/:wallet_id/rules', readBody, (req, res) => createRule({ rules, answers }, req, res));
  router.put('/v1/wallets/:wallet_id/rules/:id', readBody, (req, res) => replaceRule(rules, req, res));
  return router;
}

interface CreateRuleParts {
  rules: WalletRules;
  answers: IdempotentAnswers;
}

function createRule({ rules, answers }: CreateRuleParts, req: Request, res: Response): Promise<void> {
  const { wallet_id: walletId } = parsed(walletPath, req.params);
  return answerOnce(req, res, {
    answers,
    parse: (body) => parsed(walletRuleInput, body),
    work: async (content) => {
      const { id, version } = await orRefuse(rules.create(principalOf(req).nodeId, walletId, content));
      const headers = { Location: `/v1/wallets/${walletId}/rules/${id}`, ETag: entityTag(version) };
      return { status: 201, headers, body: null };
    },
  });
}

async function replaceRule(rules: WalletRules, req: Request, res: Response): Promise<void> {
  const { wallet_id: walletId, id } = parsed(rulePath, req.params);
  const versions = versionsOf(req.headers['if-match']);
  const content = parsed(walletRuleInput, jsonBody(req));
  const { nodeId } = principalOf(req);
  const { version } = await orRefuse(rules.replace(nodeId, { walletId, id }, content, versions));
  res.setHeader('ETag', entityTag(version));
  sendEmpty(res, 200);
}
