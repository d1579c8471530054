import { defineEntity, p } from '@mikro-orm/core';

/** A user that a tenant has migrated (specification section 2.8). `address` is stored in lower case. */
export const User = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    externalId: p.text().nullable(),
    name: p.text().default(''),
    surname: p.text().default(''),
    email: p.text().default(''),
    address: p.text(),
    identityNumber: p.text().default(''),
    kycVerified: p.boolean().default(false),
    kycTokenSent: p.boolean().default(false),
    kycTokenSentAt: p.datetime(6).$type<string>().nullable(),
    kycTokenTxHash: p.text().nullable(),
    /** When the personal data was last erased. */
    erasedAt: p.datetime(6).$type<string>().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});
