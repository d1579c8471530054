import { defineEntity, p } from '@mikro-orm/core';
import { ofNode } from './references.ts';

/** A user that a tenant has migrated (docs/contract.md, 2.8-01). `address` is stored in lower case. */
export const User = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    externalId: p.text().nullable(),
    name: p.text().default(''),
    surname: p.text().default(''),
    email: p.text().default(''),
    /** Tells users apart whose emails have one key: numbers from 0. Only rows of 0.1.0 have others than 0. */
    emailClash: p.integer().default(0),
    address: p.text(),
    identityNumber: p.text().default(''),
    kycVerified: p.boolean().default(false),
    kycTokenSent: p.boolean().default(false),
    kycTokenSentAt: p.datetime(6).$type<string>().nullable(),
    kycTokenTxHash: p.text().nullable(),
    /** When the personal data was last erased. */
    erasedAt: p.datetime(6).$type<string>().nullable(),
    /** The numbers of audit records and stored responses that all erasures of the user have erased. */
    erasedRecords: p.integer().nullable(),
    erasedResponses: p.integer().nullable(),
    /** The `sub` of the token that last erased the user; null for the command line. */
    erasedBy: p.text().nullable(),
    /** The migrations whose rows were erased, and the seal of the audit that says so, as JSON. */
    erasedMigrations: p.array().columnType('uuid[]').$type<readonly string[]>().nullable(),
    erasedSeal: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
  uniques: [
    { properties: ['nodeId', 'id'] },
    {
      name: 'users_email',
      expression:
        "create unique index users_email on users using btree (node_id, lower(email)) where (email <> ''::text)",
    },
    {
      name: 'users_email_key',
      expression:
        "create unique index users_email_key on users using btree (node_id, identifier_key(email), email_clash) where (email <> ''::text)",
    },
    {
      name: 'users_external_id',
      expression: 'create unique index users_external_id on users using btree (node_id, external_id)',
    },
    { name: 'users_address', properties: ['nodeId', 'address'], where: "address <> ''" },
  ],
  indexes: [
    { name: 'users_page', properties: ['nodeId', 'createdAt', 'id'] },
    { name: 'users_erased', properties: ['erasedAt'], where: 'erased_at is not null' },
  ],
});
