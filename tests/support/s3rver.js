// S3 over TLS as the npm package s3rver has it: `node s3rver.js '{address, certificate, folder, id, secret}'`, which prints "ready".
const fs = require('fs');
const S3rver = require('s3rver');
const AWSAccount = require('s3rver/lib/models/account');
const config = JSON.parse(process.argv[2]);
const pem = fs.readFileSync(config.certificate);
new AWSAccount(123456789000, 'Test').createKeyPair(config.id, config.secret);
new S3rver({
  address: config.address, port: 443, key: pem, cert: pem, directory: config.folder, silent: true, configureBuckets: [{ name: 'data' }],
}).run().then(() => console.log('ready'));
