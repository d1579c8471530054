// A file of its own, since the page's content security policy allows no script inside of it.

const LIMITS = /^X-(Ratelimit|MonthlyLimit)-/;

/** Shows the headers of a response, with those of the client's limits, which are the same everywhere, folded. */
function withFoldedLimits(Headers, { React: { createElement } }) {
  return ({ headers, ...props }) => {
    const limits = headers.filter((_header, name) => LIMITS.test(name));
    return createElement(
      'div',
      null,
      createElement(Headers, { ...props, headers: headers.filterNot((_header, name) => LIMITS.test(name)) }),
      limits.size > 0 &&
        createElement(
          'details',
          null,
          createElement('summary', null, "X-Ratelimit-*, X-MonthlyLimit-*: what is left of the client's limits"),
          createElement(Headers, { ...props, headers: limits }),
        ),
    );
  };
}

window.SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  plugins: [{ wrapComponents: { headers: withFoldedLimits } }],
});
