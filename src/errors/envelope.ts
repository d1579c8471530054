import type { AppError, Issue } from './app-error.ts';

/** The documented error body (specification section 2.3); `errors` stands beside a 400 outside the token endpoint. */
export interface ErrorEnvelope {
  code: -1;
  domain: 0;
  message: string;
  errors?: Issue[];
}

/** The envelope of a refusal. */
export function errorEnvelope(error: AppError): ErrorEnvelope {
  const envelope: ErrorEnvelope = { code: -1, domain: 0, message: error.message };
  return error.issues ? { ...envelope, errors: error.issues } : envelope;
}
