// What GraphiQL does not know of this platform: its tokens, and its answers that are none of GraphQL.

const TYPING_ENDS_AFTER_MS = 400;

/** Stands below the error in the pane of the docs, which are not fetched without a token that is good. */
const DOCS_ADVICE =
  'The docs need a token: put one under Headers. npm start prints a header with one; POST /v2/oauth/token answers one.';

function errorAnswer(message, extensions) {
  return Response.json({ errors: [{ message, extensions }] });
}

/** The refusal in words that tell what to do, or the answer itself where GraphiQL can read it. */
async function readable(answer) {
  if (answer.ok || !answer.headers.get('content-type')?.includes('json')) return answer;
  const body = await answer.clone().json();
  if (body.data || body.errors) return answer;
  const hint = answer.status === 401 ? ': the token under Headers is unknown, or it has ended' : '';
  const correlationId = answer.headers.get('x-correlation-id') ?? undefined;
  return errorAnswer(`${answer.status} ${body.message}${hint}`, { correlationId });
}

function bearerOf(headers) {
  const { authorization } = Object.fromEntries(new Headers(headers));
  return authorization;
}

/**
 * Stores what the open tab has as what the editors had: GraphiQL opens another tab where the two differ, and keeps of the
 * editors only what was edited.
 */
function reopenTab(storage) {
  const { tabs, activeTabIndex } = JSON.parse(storage.getItem('graphiql:tabState') ?? '{"tabs":[]}');
  for (const editor of ['query', 'variables', 'headers']) {
    storage.setItem(`graphiql:${editor}`, tabs[activeTabIndex]?.[editor] ?? '');
  }
}

/** Opens GraphiQL by the function of its bundle: the schema is fetched again as soon as there is another token. */
// biome-ignore lint/correctness/noUnusedVariables: the page calls it.
function openGraphiql(render, root, options) {
  const send = window.fetch.bind(window);
  window.fetch = async (url, init) => {
    // What is there before somebody puts a token is no request yet.
    if (bearerOf(init?.headers) === 'Bearer') {
      return errorAnswer('No token yet: put one under Headers, after "Bearer ", and run this again');
    }
    return readable(await send(url, init));
  };

  let used = JSON.parse(options.headers).Authorization;
  let typing;
  function onEditHeaders(text) {
    clearTimeout(typing);
    typing = setTimeout(() => {
      const bearer = authorizationIn(text);
      if (bearer === undefined || bearer === used) return;
      used = bearer;
      // GraphiQL's own shortcut for it.
      window.dispatchEvent(new KeyboardEvent('keydown', { key: 'R', ctrlKey: true, shiftKey: true }));
    }, TYPING_ENDS_AFTER_MS);
  }
  const style = document.createElement('style');
  style.textContent = `.graphiql-doc-explorer-error::after { display: block; margin-top: 1em; content: '${DOCS_ADVICE}' }`;
  document.head.append(style);
  reopenTab(window.sessionStorage);
  // Tabs and headers outlive a reload, but not the browser's tab: a token is not for everybody at this machine.
  render(root, { ...options, onEditHeaders, storage: window.sessionStorage });
}

/** The Authorization header in the text of the editor, undefined while that is no JSON. */
function authorizationIn(text) {
  try {
    return bearerOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
