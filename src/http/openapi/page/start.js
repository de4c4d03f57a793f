const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const followColorScheme = () => document.documentElement.classList.toggle('dark-mode', prefersDark.matches)
prefersDark.addEventListener('change', followColorScheme)
followColorScheme()

window.SwaggerUIBundle({
  url: '/api/v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // By default, Swagger UI may send the URL of the document to validator.swagger.io. The value null prevents this.
  validatorUrl: null,
})
