update dalsegno.reruns set metadata = '{"eval": "captions", "eval_run": "0aa1"}';
