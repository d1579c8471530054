// A file of its own, since the page's content security policy allows no script inside of it.

const LIMITS = /^X-(Ratelimit|MonthlyLimit)-/;

/** Shows the headers of a response without those of the client's limits: the page shows them once. */
function withoutLimits(Headers, { React: { createElement } }) {
  return ({ headers, areLimits = false, ...props }) =>
    createElement(Headers, { ...props, headers: headers.filter((_header, name) => LIMITS.test(name) === areLimits) });
}

/** Adds the headers of the client's limits, folded, to what the page says before its operations. */
function withLimits(InfoContainer, { React: { createElement }, getComponent, specSelectors }) {
  return (props) => {
    const headers = specSelectors.specJson().getIn(['components', 'headers']);
    return createElement(
      'div',
      null,
      createElement(InfoContainer, props),
      headers &&
        createElement(
          'details',
          { id: 'limits' },
          createElement('summary', null, 'Every answer to a client with limits: X-Ratelimit-*, X-MonthlyLimit-*'),
          createElement(getComponent('headers'), { headers, areLimits: true, getComponent }),
        ),
    );
  };
}

/** Folds the ways to authorize behind the first, which is a client's own. */
function withFoldedOthers(Auths, { React: { createElement } }) {
  return (props) => {
    const { definitions, authSelectors } = props;
    const way = createElement(Auths, props);
    if (definitions === authSelectors.shownDefinitions().first()) return way;
    const [name, scheme] = definitions.entrySeq().first();
    const kind = scheme.get('flow') ?? scheme.get('scheme');
    return createElement('details', null, createElement('summary', null, `${name}, ${kind}`), way);
  };
}

window.SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  plugins: [{ wrapComponents: { headers: withoutLimits, InfoContainer: withLimits, auths: withFoldedOthers } }],
});
