const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const followColorScheme = () => document.documentElement.classList.toggle('dark-mode', prefersDark.matches)
prefersDark.addEventListener('change', followColorScheme)
followColorScheme()

// A proxy may serve this page below a path, such as /courtside/docs. The document names paths without it.
const base = location.pathname.replace(/docs$/, '')

function addBase(request) {
  const url = new URL(request.url, location.href)
  if (url.origin === location.origin && !url.pathname.startsWith(base)) url.pathname = base + url.pathname.slice(1)
  request.url = url.href
  return request
}

window.SwaggerUIBundle({
  url: 'api/v1/openapi.json',
  requestInterceptor: addBase,
  dom_id: '#reference',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // By default, Swagger UI may send the URL of the document to validator.swagger.io. The value null prevents this.
  validatorUrl: null,
})
