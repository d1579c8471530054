/**
 * A name whose values are secrets, in snake case, and the reason. Names are compared by their letters and digits alone,
 * in lower case: `api_key` stands for `apiKey`, `Api-Key`, `API KEY` and `apikey`.
 */
type Named = Readonly<Record<string, string>>;

/** Names that are masked with any word in front, with a word of `SECRET_FORMS` behind, and in the plural. */
export const SECRET_ENDINGS: Named = {
  secret: 'documented: credentials of a client, signing secrets',
  password: 'documented: credentials of a person or a service',
  token: 'documented: whoever has a bearer token acts as its owner',
  passphrase: 'unlocks a key store or a wallet; the 25th word of a mnemonic',
  passwd: 'another word for a password',
  pwd: 'another word for a password',
  private_key: 'key material: whoever has it signs for its owner',
  priv_key: 'another word for a private key',
  secret_key: 'the private half of a key, or the secret half of a credential',
  mnemonic: 'key material: all keys of a wallet derive from it',
  seed_phrase: 'another word for a mnemonic',
  api_key: 'a bearer credential; `X-Api-Key` is its usual header',
  access_key: 'a credential of a cloud service',
  key_share: 'a part of a private key (MPC, Shamir)',
  key_shard: 'another word for a key share',
  recovery_phrase: 'another word for a mnemonic',
  backup_phrase: 'another word for a mnemonic',
  secret_phrase: 'another word for a mnemonic',
  seed_words: 'another word for a mnemonic',
  recovery_words: 'another word for a mnemonic',
  pass_code: 'another word for a PIN',
  otp: 'a one-time password; also `totp` and `hotp`, and the secret behind them',
  otp_code: 'a one-time password',
  verification_code: 'a one-time password',
  cvv: 'the code that authorises payments by card',
  cvc: 'the code that authorises payments by card',
};

/** Words after a name of `SECRET_ENDINGS` that leave it a secret: how it is written, or that it is there again. */
export const SECRET_FORMS: Named = {
  hex: 'the secret in hexadecimal',
  base64: 'the secret in base64',
  b64: 'the secret in base64',
  base58: 'the secret in base58',
  wif: 'a key in the wallet import format',
  pem: 'a key in PEM',
  der: 'a key in DER',
  jwk: 'a key as a JWK',
  bytes: 'the secret as it is',
  raw: 'the secret as it is',
  plain: 'the secret as it is',
  plaintext: 'the secret as it is',
  phrase: 'the words of a mnemonic',
  words: 'the words of a mnemonic',
  backup: 'a copy',
  copy: 'a copy',
  confirm: 'a copy, to find typing errors',
  confirmation: 'a copy, to find typing errors',
  repeat: 'a copy, to find typing errors',
  again: 'a copy, to find typing errors',
};

/** Names that are masked as they are, alone, after `x`, or in the plural. */
export const SECRET_NAMES: Named = {
  authorization: 'documented: the credentials of a request',
  proxy_authorization: 'the credentials of a request to a proxy',
  credentials: 'a secret, or an object that holds one',
  cookie: 'documented: whoever has the cookie of a session acts as its owner',
  set_cookie: 'another header of cookies',
  search: 'may hold the email of a user; a search that finds nobody notes no user, so that no erasure finds its record',
  attempted_username: 'people type passwords into the field of the username; records have a hash of an unknown one',
  password1: 'a password, where a form asks for it twice',
  password2: 'a password, where a form asks for it twice',
  secret_value: 'a secret',
  otp_value: 'a one-time password',
  private_jwk: 'a private key as a JWK',
  xprv: 'an extended private key (BIP 32)',
  xpriv: 'another word for an extended private key',
  wif: 'a private key in the wallet import format',
  auth_key: 'a bearer credential',
  subscription_key: 'the API key of some gateways',
  spend_key: 'key material of chains with separate keys',
  spending_key: 'another word for a spend key',
  view_key: 'key material: it reveals all transfers of a wallet',
  master_key: 'all other keys derive from it, or are encrypted with it',
  root_key: 'another word for a master key',
  signing_key: 'key material: whoever has it signs for its owner',
  encryption_key: 'key material of stored data',
  decryption_key: 'key material of stored data',
  wrapping_key: 'it encrypts other keys',
  symmetric_key: 'key material of both sides',
  shared_key: 'key material of both sides',
  session_key: 'key material of a connection',
  hmac_key: 'whoever has it signs messages',
  aes_key: 'key material of stored data',
  unseal_key: 'it opens a vault',
  secret_share: 'another word for a key share',
  key_store: 'a file of private keys, encrypted or not',
  pkcs12: 'a key store',
  pfx: 'a key store',
  wallet_seed: 'all keys of a wallet derive from it',
  hd_seed: 'all keys of a wallet derive from it (BIP 32)',
  master_seed: 'all keys of a wallet derive from it',
  recovery_seed: 'all keys of a wallet derive from it',
  seed_hex: 'all keys of a wallet derive from it',
  pin: 'a password of digits',
  pin_code: 'another word for a PIN',
  card_pin: 'the PIN of a card',
  user_pin: 'the PIN of a person',
  new_pin: 'a PIN that is about to be set',
  old_pin: 'a PIN that is about to be replaced',
  current_pin: 'a PIN that is checked',
  confirm_pin: 'a PIN that is repeated',
  wallet_pin: 'the PIN of a wallet',
  account_pin: 'the PIN of an account',
  login_pin: 'the PIN of a person',
  transaction_pin: 'it authorises a transfer',
  pin_number: 'another word for a PIN',
  puk: 'resets a PIN',
  access_code: 'another word for a PIN',
  unlock_code: 'another word for a PIN',
  tan: 'the one-time code of a transfer',
  one_time_code: 'a one-time password',
  mfa_code: 'a one-time password',
  two_factor_code: 'a one-time password',
  '2fa_code': 'a one-time password',
  sms_code: 'a one-time password',
  confirmation_code: 'a one-time password',
  activation_code: 'it opens an account once',
  recovery_code: 'it replaces the second factor once',
  backup_code: 'another word for a recovery code',
  device_code: 'the client of a device exchanges it for a token (RFC 8628)',
  user_code: 'it authorises a device (RFC 8628)',
  code_verifier: 'it proves who may exchange an authorization code (RFC 7636)',
  assertion: 'it is exchanged for a token (RFC 7521)',
  client_assertion: 'the credential of a client (RFC 7523)',
  saml_response: 'whoever has it signs in as its subject',
  connection_string: 'usually holds a password',
  cvv2: 'the code that authorises payments by card',
  cvc2: 'the code that authorises payments by card',
  security_code: 'the code that authorises payments by card',
};

/** Names that are masked where the value is text, an object, or a list that does not begin with a number. */
export const TEXT_NAMES: Named = {
  seed: 'all keys of a wallet derive from it; as a number, it is the start of a random sequence',
  entropy: 'a mnemonic and its seed derive from it; as a number, it is a measure',
};

/** The private members of a JWK (RFC 7518 section 6), which are masked in an object that has a member `kty`. */
export const JWK_MEMBERS: Named = {
  d: 'the private key',
  p: 'the first prime factor of an RSA key',
  q: 'the second prime factor of an RSA key',
  dp: 'the exponent of the first factor',
  dq: 'the exponent of the second factor',
  qi: 'the coefficient of the first factor',
  oth: 'other prime factors',
  k: 'a symmetric key',
  priv: 'the private key of an algorithm key pair (AKP)',
};

/** Names of a member that says what another member of its object holds: a header, a field, an attribute, an invalid input. */
export const LABELS: readonly string[] = ['name', 'key', 'field', 'path', 'id', 'loc', 'property'];

/** Matches the names of that other member. */
export const LABELLED_VALUE = 'value|input|rejected_?value';

/** Names that stay although they resemble those above, with the reason. */
export const FALSE_FRIENDS: Named = {
  'public_key, key, key_id, kid': 'name or hold what everyone may know',
  'access_key_id, private_key_id, client_id, token_id, token_type, secret_name': 'name a secret without holding it',
  'otp_length, password_policy, mnemonic_language': 'describe a secret without holding it',
  'token_value, token_address, token0': 'belong to an asset',
  'tokens, passwords':
    'plurals that name assets (`tokens`) or objects whose members are masked by their own names; `refresh_tokens` is masked',
  'signature, hash, fingerprint, salt, nonce, state': 'evidence that reveals no key',
  'code, status_code, country_code, currency_code, error_code':
    'mostly no secret; add `code` for a service that takes authorization codes',
  'address, iban, card_number, account_number': 'personal data, which an erasure removes, or an operator adds',
  'shipping, pinned, pin_count, map_pin, api_version, spinning, seeded': 'other words',
};
