#!/usr/bin/env bash
# Once per AWS account: a bucket for results, and a role that lets the machines of cluster.yaml write to it and lets
# the head start and end machines. What is there already stays. bash cluster/aws-once.sh BUCKET [REGION]
set -euo pipefail
bucket=${1:?error: give the name of a bucket, such as my-distpaml-results}
region=${2:-us-west-2}
there() { "$@" >/dev/null 2>&1; }

there aws s3api head-bucket --bucket "$bucket" || aws s3 mb "s3://$bucket" --region "$region"
aws s3api put-public-access-block --bucket "$bucket" --public-access-block-configuration \
    BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
there aws iam get-role --role-name distpaml ||
    aws iam create-role --role-name distpaml --assume-role-policy-document '{
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]
    }' >/dev/null
role=$(aws iam get-role --role-name distpaml --query Role.Arn --output text)
aws iam put-role-policy --role-name distpaml --policy-name distpaml --policy-document '{
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetBucketLocation"], "Resource": "arn:aws:s3:::'"$bucket"'"},
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
         "Resource": "arn:aws:s3:::'"$bucket"'/*"},
        {"Effect": "Allow", "Action": ["ec2:Describe*", "ec2:RunInstances", "ec2:CreateTags", "ssm:GetParameters"],
         "Resource": "*"},
        {"Effect": "Allow", "Action": ["ec2:TerminateInstances", "ec2:StopInstances", "ec2:StartInstances"],
         "Resource": "*", "Condition": {"StringEquals": {"ec2:ResourceTag/ray-cluster-name": "distpaml"}}},
        {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "'"$role"'"}
    ]
}'
there aws iam get-instance-profile --instance-profile-name distpaml ||
    aws iam create-instance-profile --instance-profile-name distpaml >/dev/null
there aws iam add-role-to-instance-profile --instance-profile-name distpaml --role-name distpaml ||
    [ "$(aws iam get-instance-profile --instance-profile-name distpaml \
        --query 'InstanceProfile.Roles[0].RoleName' --output text)" = distpaml ]
there aws iam create-service-linked-role --aws-service-name spot.amazonaws.com || true  # it may be there
echo "python -m distpaml.sweep paper --out 's3://$bucket/paper?region=$region'"
