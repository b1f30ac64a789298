export default function NotFound() {
  return (
    <div className="page">
      {/* Here, because the metadata of a tenant's pages is not to be had without a tenant. */}
      <title>Not found</title>
      <main id="content" className="content middle">
        <h1>There is nothing here</h1>
        <p className="muted">Perhaps the address has a typing error, or the tenant is gone.</p>
      </main>
    </div>
  );
}
