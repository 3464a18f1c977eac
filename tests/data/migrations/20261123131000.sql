update dalsegno.tasks set traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
 where id = '00000000-0000-7000-8000-000000000005';
