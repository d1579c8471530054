import { type Issue, invalidRequest } from '../errors/app-error.ts';

/** What the parameters of a list may be (specification section 8); the least of each is 1. */
export const PAGE_PARAMETERS = {
  page: { ifAbsent: 1, atMost: Number.MAX_SAFE_INTEGER },
  limit: { ifAbsent: 10, atMost: 100 },
};

interface Page {
  /** From 1. */
  page: number;
  /** Rows of a page, 1 to 100. */
  limit: number;
}

/**
 * `page` and `limit` of a list (specification section 8): decimal digits, given at most once, in range.
 * @throws AppError 400 that names each faulty parameter.
 */
export function pageQuery(query: URLSearchParams): Page {
  const issues: Issue[] = [];
  const page = positive(query, 'page', issues);
  const limit = positive(query, 'limit', issues);
  if (issues.length > 0) throw invalidRequest(issues);
  return { page, limit };
}

function positive(query: URLSearchParams, name: keyof typeof PAGE_PARAMETERS, issues: Issue[]): number {
  const { ifAbsent, atMost } = PAGE_PARAMETERS[name];
  const given = query.getAll(name);
  const [text] = given;
  if (text === undefined) return ifAbsent;
  const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (given.length > 1) issues.push({ path: name, message: 'must be given once' });
  else if (!(value >= 1 && value <= atMost))
    issues.push({ path: name, message: `must be a whole number from 1 to ${atMost}` });
  return value;
}
