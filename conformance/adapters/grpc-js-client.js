// A gRPC client (grpc-js with grpc-js-xds) that does nothing but resolve xds:///l1, for --induced reference:
// xds-conformance client --induced reference --variants sotw -- env GRPC_XDS_BOOTSTRAP={bootstrap} node grpc-js-client.js
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const client = new grpc.Client('xds:///l1', grpc.credentials.createInsecure());
const connect = () => client.waitForReady(Date.now() + 1000, connect);
connect();
